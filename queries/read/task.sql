-- name: TaskByID :one
SELECT sqlc.embed(t), coalesce(t.outcome, r.state, 'queued')::text AS state
FROM task t LEFT JOIN run r ON r.id = t.active_run WHERE t.id = @id;

-- name: TaskPage :many
-- The last changed first. The index orders equal times by id upwards. What is not asked for is null, and a
-- filter of states is empty when all are wanted.
SELECT sqlc.embed(t), coalesce(t.outcome, r.state, 'queued')::text AS state
FROM task t LEFT JOIN run r ON r.id = t.active_run
WHERE t.space_id = @space_id AND t.changed_at <= @at AND (t.changed_at < @at OR t.id > @id)
    AND (sqlc.narg(agent_id)::uuid IS NULL OR t.agent_id = sqlc.narg(agent_id))
    AND (sqlc.narg(pattern)::text IS NULL OR t.title_lower LIKE sqlc.narg(pattern))
    AND (cardinality(@states::text[]) = 0 OR coalesce(t.outcome, r.state, 'queued') = ANY (@states::text[]))
ORDER BY t.changed_at DESC, t.id LIMIT @lim;
