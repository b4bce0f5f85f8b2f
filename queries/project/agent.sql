-- name: AgentSet :exec
INSERT INTO agent (id, space_id, revision, name, model, revised_at, version)
VALUES (@id, @space_id, @revision, sqlc.narg(name), @model, @revised_at, @version)
ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, name = excluded.name, model = excluded.model,
    revised_at = excluded.revised_at, version = excluded.version;

-- name: AgentRevisionInsert :exec
INSERT INTO agent_revision (agent_id, revision, space_id, name, model, instructions, tools, revised_by, revised_at)
VALUES (@agent_id, @revision, @space_id, sqlc.narg(name), @model, sqlc.narg(instructions), @tools, @revised_by, @revised_at);
