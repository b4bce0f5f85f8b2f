-- name: ConversationByID :one
SELECT * FROM conversation WHERE id = @id;

-- name: ConversationPage :many
-- The last changed first. The index orders equal times by id upwards. What is not asked for is null. A title is
-- compared by position, which gives no character a meaning.
SELECT * FROM conversation
WHERE space_id = @space_id AND changed_at <= @at AND (changed_at < @at OR id > @id)
    AND (sqlc.narg(agent_id)::uuid IS NULL OR agent_id = sqlc.narg(agent_id))
    AND (sqlc.narg(title)::text IS NULL OR position(sqlc.narg(title) IN title_lower) > 0)
    AND (sqlc.narg(active)::boolean IS NULL OR (active_run IS NOT NULL) = sqlc.narg(active))
ORDER BY changed_at DESC, id LIMIT @lim;

-- name: MessagePage :many
-- With what the run that answers has come to.
SELECT sqlc.embed(m), coalesce(r.state, 'queued')::text AS run_state, r.answer, r.failure_code
FROM message m LEFT JOIN run r ON r.id = m.run_id
WHERE m.conversation_id = @conversation_id AND m.version < @version ORDER BY m.version DESC LIMIT @lim;
