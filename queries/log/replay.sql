-- Reading the log to fold it again. Each is a keyset: the last row of one answer is the start of the next.

-- name: EventsUpTo :many
SELECT p.position, sqlc.embed(e)
FROM (SELECT position, event_id FROM log.log_position WHERE position > @after AND position <= @until ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;

-- name: EventsUnsequenced :many
-- Committed events that wait for a position, in the order in which they will get it.
SELECT u.seq, sqlc.embed(e)
FROM (SELECT seq, event_id FROM log.unsequenced WHERE seq > @after ORDER BY seq LIMIT @lim) u
JOIN log.event e ON e.id = u.event_id ORDER BY u.seq;

-- name: EventsByStream :many
-- Whole streams one after the other, the newest ids first: as unlike the order of arrival as streams allow.
SELECT * FROM log.event
WHERE stream_id <= @stream_id AND (stream_id < @stream_id OR version > @version)
ORDER BY stream_id DESC, version LIMIT @lim;

-- name: EventsByStreamUpTo :many
-- The same, of the events that have a position up to and with one.
SELECT e.* FROM log.event e JOIN log.log_position p ON p.event_id = e.id
WHERE e.stream_id <= @stream_id AND (e.stream_id < @stream_id OR e.version > @version) AND p.position <= @until
ORDER BY e.stream_id DESC, e.version LIMIT @lim;

-- name: EventsRelated :many
-- The events of streams that are one of the ids, or belong to one of them, in the order of the log.
SELECT e.id, e.stream_id, e.version
FROM log.event e LEFT JOIN log.log_position p ON p.event_id = e.id LEFT JOIN log.unsequenced u ON u.event_id = e.id
WHERE e.stream_id IN (SELECT s.id FROM log.stream s
    WHERE s.id = ANY(@ids::uuid[]) OR s.space_id = ANY(@ids::uuid[]) OR s.topic_id = ANY(@ids::uuid[]))
ORDER BY p.position NULLS LAST, u.seq;

-- name: EventsByID :many
-- In the order of the ids given.
SELECT coalesce(p.position, 0)::bigint AS position, sqlc.embed(e)
FROM unnest(@ids::uuid[]) WITH ORDINALITY AS w(id, n) JOIN log.event e ON e.id = w.id LEFT JOIN log.log_position p ON p.event_id = e.id
ORDER BY w.n;
