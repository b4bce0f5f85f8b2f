-- Reading the log.

-- name: EventsAfterVersion :many
SELECT * FROM log.event WHERE stream_id = @stream_id AND version > @version ORDER BY version;

-- name: EventsWithPosition :many
SELECT sqlc.embed(e), coalesce(p.position, 0)::bigint AS position
FROM log.event e LEFT JOIN log.log_position p ON p.event_id = e.id
WHERE e.stream_id = @stream_id AND e.version > @version ORDER BY e.version LIMIT @lim;

-- name: EventExists :one
SELECT EXISTS (SELECT FROM log.event WHERE id = @id);

-- name: EventsSince :many
SELECT p.position, sqlc.embed(e)
FROM (SELECT position, event_id FROM log.log_position WHERE position > @after ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;

-- name: EventsSinceOfSpace :many
SELECT p.position, sqlc.embed(e)
FROM (SELECT position, event_id FROM log.log_position lp WHERE lp.space_id = @space_id AND position > @after ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;

-- name: EventsSinceOfTopic :many
SELECT p.position, sqlc.embed(e)
FROM (SELECT position, event_id FROM log.log_position lp WHERE lp.topic_id = @topic_id AND position > @after ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;

-- name: CommandAnswer :many
SELECT c.actor, c.key, c.request_mac, c.answer FROM log.command c
JOIN (SELECT unnest(@actors::text[]) AS actor, unnest(@keys::text[]) AS key) k ON k.actor = c.actor AND k.key = c.key;

-- name: CommandForget :execrows
DELETE FROM log.command WHERE at < @before;

-- name: LogIdentity :one
SELECT log_id, incarnation, (SELECT last FROM log.log_head)::bigint AS head FROM log.log_identity;

-- name: EventsOfStreamSince :many
-- In one stream the order of positions is that of versions.
SELECT p.position, sqlc.embed(e)
FROM log.event e JOIN log.log_position p ON p.event_id = e.id
WHERE e.stream_id = @stream_id AND p.position > @after ORDER BY e.version LIMIT @lim;

-- name: EventsSinceOfSpaceKinds :many
-- Only some kinds of a space: walks the index on (space_id, position) until the limit is reached.
SELECT p.position, sqlc.embed(e)
FROM log.log_position p JOIN log.event e ON e.id = p.event_id
WHERE p.space_id = @space_id AND p.position > @after AND e.kind = ANY(@kinds::text[])
ORDER BY p.position LIMIT @lim;
