-- The Merkle tree and its signed heads.

-- name: CheckpointTryLock :one
-- One process at a time extends the tree. Whoever comes second goes away: what it came for is being done.
SELECT pg_try_advisory_xact_lock(7236838231894510696);

-- name: CheckpointLock :exec
SELECT pg_advisory_xact_lock(7236838231894510696);

-- name: CheckpointLast :one
SELECT incarnation, size, note, at FROM log.log_checkpoint ORDER BY incarnation DESC, size DESC LIMIT 1;

-- name: CheckpointsAfter :many
SELECT incarnation, size, note, at FROM log.log_checkpoint
WHERE (incarnation, size) > (@incarnation::bigint, @size::bigint) ORDER BY incarnation, size LIMIT @lim;

-- name: CheckpointInsert :exec
INSERT INTO log.log_checkpoint (incarnation, size, note, at) VALUES (@incarnation, @size, @note, @at);

-- name: TreeHashes :many
SELECT index, hash FROM log.log_tree WHERE index = ANY(@indexes::bigint[]);

-- name: TreeRange :many
SELECT index, hash FROM log.log_tree WHERE index >= @first AND index < @bound ORDER BY index;

-- name: TreeInsert :exec
-- One message, not COPY: a process that is frozen inside COPY keeps its lock, whatever the timeouts say.
INSERT INTO log.log_tree (index, hash) SELECT unnest(@indexes::bigint[]), unnest(@hashes::bytea[]);

-- name: LeavesSince :many
SELECT p.position, e.leaf_hash
FROM (SELECT position, event_id FROM log.log_position WHERE position > @after ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;

-- name: LogIncarnate :exec
UPDATE log.log_identity SET incarnation = @incarnation;

-- name: LogCounts :one
SELECT (SELECT count(*) FROM log.event)::bigint AS events,
       (SELECT count(*) FROM log.log_position)::bigint AS positions,
       (SELECT count(*) FROM log.unsequenced)::bigint AS unsequenced,
       (SELECT count(*) FROM log.log_tree)::bigint AS hashes;

-- name: EventsUnplaced :many
-- Events that neither have a position nor wait for one.
SELECT e.id, e.stream_id, e.kind FROM log.event e
WHERE NOT EXISTS (SELECT FROM log.log_position p WHERE p.event_id = e.id)
  AND NOT EXISTS (SELECT FROM log.unsequenced u WHERE u.event_id = e.id)
ORDER BY e.id LIMIT 1;

-- name: SubjectsDestroyed :many
SELECT subject FROM vault.subject_key WHERE wrapped IS NULL;
