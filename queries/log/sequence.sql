-- Giving positions, and the low cursor that skips what every transaction has left behind.

-- name: LogSequence :one
SELECT log.log_sequence(@lim::integer, @low::bigint)::integer AS n;

-- name: SequenceDrawn :one
SELECT coalesce(pg_sequence_last_value('log.unsequenced_seq_seq'::regclass), 0)::bigint AS drawn;

-- name: TransactionID :one
SELECT (pg_current_xact_id()::text)::bigint AS id;

-- name: TransactionOldest :one
SELECT (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint AS id;

-- name: UnsequencedAge :one
-- Seconds that the oldest committed event has waited for its position; null when none waits.
SELECT extract(epoch FROM now() - e.recorded_at)::double precision AS seconds
FROM (SELECT event_id FROM log.unsequenced ORDER BY seq LIMIT 1) u JOIN log.event e ON e.id = u.event_id;
