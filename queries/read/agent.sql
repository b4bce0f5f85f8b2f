-- name: AgentByID :one
SELECT * FROM agent WHERE id = @id;

-- name: AgentPage :many
SELECT * FROM agent WHERE space_id = @space_id AND (revised_at, id) < (@at::timestamptz, @id::uuid)
ORDER BY revised_at DESC, id DESC LIMIT @lim;
