-- Leases of workers, by the database's clock. The column conversation_id is the run's topic: that was a
-- conversation before there were tasks.

-- name: LeaseRenew :one
-- Takes or renews. No row when a later epoch holds it.
INSERT INTO log.lease (run_id, space_id, conversation_id, epoch, worker, expires_at)
VALUES (@run_id, @space_id, @conversation_id, @epoch, @worker, now() + make_interval(secs => @ttl_seconds::float8))
ON CONFLICT (run_id) DO UPDATE SET epoch = excluded.epoch, worker = excluded.worker, expires_at = excluded.expires_at
WHERE lease.epoch <= excluded.epoch
RETURNING true AS held;

-- name: LeaseDrop :exec
DELETE FROM log.lease WHERE run_id = @run_id AND epoch = @epoch;

-- name: LeaseExpired :many
SELECT run_id, space_id, conversation_id, epoch, worker FROM log.lease WHERE expires_at < now() ORDER BY expires_at LIMIT @lim;
