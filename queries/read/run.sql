-- name: RunByID :one
SELECT * FROM run WHERE id = @id;

-- name: RunOfConversation :many
SELECT * FROM run WHERE conversation_id = @conversation_id ORDER BY queued_at, id LIMIT @lim;

-- name: RunQueuedActive :many
-- Runs that should have a job: queued, and their turn has started.
SELECT r.id, r.space_id, r.conversation_id, r.queue
FROM run r JOIN conversation c ON c.id = r.conversation_id AND c.active_run = r.id
WHERE r.state = 'queued' ORDER BY r.queued_at LIMIT @lim;

-- name: RunActiveAbandoned :many
-- Runs that a worker claimed but that have no lease.
SELECT r.id, r.space_id, r.conversation_id, r.epoch, coalesce(r.worker, '')::text AS worker
FROM run r LEFT JOIN log.lease l ON l.run_id = r.id
WHERE r.state IN ('starting', 'running') AND l.run_id IS NULL AND r.started_at < @before LIMIT @lim;
