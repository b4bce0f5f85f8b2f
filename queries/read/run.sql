-- name: RunByID :one
SELECT * FROM run WHERE id = @id;

-- name: RunPageOfTask :many
-- The newest attempt first.
SELECT * FROM run WHERE task_id = @task_id AND attempt < @attempt ORDER BY attempt DESC LIMIT @lim;

-- name: RunWithoutJob :many
-- Runs that may be claimed and that wait for a worker, but that no job in the queue will bring to one: those
-- whose turn has started, and those of tasks, which never wait for another one. A job that has been running for
-- long without claiming its run will not do so any more.
SELECT r.id, r.space_id, r.conversation_id, r.task_id, r.queue
FROM run r LEFT JOIN conversation c ON c.id = r.conversation_id AND c.active_run = r.id
WHERE r.state = 'queued' AND (c.id IS NOT NULL OR r.task_id IS NOT NULL) AND NOT EXISTS (
    SELECT FROM river_job j
    WHERE j.kind = 'run' AND j.args @> jsonb_build_object('run', r.id::text)
      AND (j.state IN ('available', 'pending', 'retryable', 'scheduled') OR (j.state = 'running' AND j.attempted_at > @stale)))
ORDER BY r.queued_at LIMIT @lim;

-- name: RunActiveAbandoned :many
-- Runs that a worker claimed but that have no lease.
SELECT r.id, r.space_id, coalesce(r.task_id, r.conversation_id)::uuid AS topic_id, r.epoch, coalesce(r.worker, '')::text AS worker
FROM run r LEFT JOIN log.lease l ON l.run_id = r.id
WHERE r.state IN ('starting', 'running') AND l.run_id IS NULL AND r.started_at < @before LIMIT @lim;

-- name: RunOpenCounts :many
-- How many runs are in each state that is not an end; a state without runs has no row.
SELECT state, count(*) AS runs FROM run WHERE state IN ('queued', 'starting', 'running') GROUP BY state;

-- name: JobCounts :many
-- How many jobs of each queue are not finished, by state; what has none has no row.
SELECT queue, state::text AS state, count(*) AS jobs FROM river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled') GROUP BY queue, state;
