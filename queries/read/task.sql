-- name: TaskByID :one
SELECT sqlc.embed(t), coalesce(t.outcome, (SELECT r.state FROM run r WHERE r.id = t.active_run), 'queued')::text AS state
FROM task t WHERE t.id = @id;

-- name: TaskPage :many
-- The last changed first. The index orders equal times by id upwards. What is not asked for is null, and a
-- filter of states is empty when all are wanted. The newest run is looked up only for tasks with an active one,
-- and a title is compared by position, which gives no character a meaning: so that a search without a hit is one
-- walk along the index.
SELECT sqlc.embed(t), coalesce(t.outcome, (SELECT r.state FROM run r WHERE r.id = t.active_run), 'queued')::text AS state
FROM task t
WHERE t.space_id = @space_id AND t.changed_at <= @at AND (t.changed_at < @at OR t.id > @id)
    AND (sqlc.narg(agent_id)::uuid IS NULL OR t.agent_id = sqlc.narg(agent_id))
    AND (sqlc.narg(title)::text IS NULL OR position(sqlc.narg(title) IN t.title_lower) > 0)
    AND (cardinality(@states::text[]) = 0 OR t.outcome = ANY (@states::text[]) OR t.outcome IS NULL
        AND coalesce((SELECT r.state FROM run r WHERE r.id = t.active_run), 'queued') = ANY (@states::text[]))
ORDER BY t.changed_at DESC, t.id LIMIT @lim;
