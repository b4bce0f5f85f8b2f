-- The Merkle tree and its signed heads.

-- name: CheckpointLast :one
SELECT size, note, at FROM log.log_checkpoint ORDER BY size DESC LIMIT 1;

-- name: CheckpointAll :many
SELECT size, note, at FROM log.log_checkpoint ORDER BY size;

-- name: CheckpointInsert :exec
INSERT INTO log.log_checkpoint (size, note, at) VALUES (@size, @note, @at) ON CONFLICT DO NOTHING;

-- name: TreeHashes :many
SELECT index, hash FROM log.log_tree WHERE index = ANY(@indexes::bigint[]);

-- name: TreeInsert :copyfrom
INSERT INTO log.log_tree (index, hash) VALUES (@index, @hash);

-- name: LeavesSince :many
SELECT p.position, e.leaf_hash
FROM (SELECT position, event_id FROM log.log_position WHERE position > @after ORDER BY position LIMIT @lim) p
JOIN log.event e ON e.id = p.event_id ORDER BY p.position;
