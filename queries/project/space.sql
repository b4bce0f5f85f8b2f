-- name: SpaceInsert :exec
INSERT INTO space (id, personal, name, slug, created_at, version)
VALUES (@id, @personal, sqlc.narg(name), sqlc.narg(slug), @created_at, @version);

-- name: SpaceTouch :exec
UPDATE space SET version = @version WHERE id = @id;

-- name: SpaceErase :exec
UPDATE space SET name = NULL, slug = NULL, erased = true, version = @version WHERE id = @id;

-- name: SpaceEraseAgent :exec
UPDATE agent SET name = NULL WHERE space_id = @space_id;

-- name: SpaceEraseAgentRevision :exec
UPDATE agent_revision SET name = NULL, instructions = NULL WHERE space_id = @space_id;

-- name: SpaceEraseConversation :exec
UPDATE conversation SET title = NULL, title_lower = NULL, source_folder = NULL WHERE space_id = @space_id;

-- name: SpaceEraseTask :exec
UPDATE task SET title = NULL, title_lower = NULL, source_folder = NULL WHERE space_id = @space_id;

-- name: SpaceEraseMessage :exec
UPDATE message SET text = NULL WHERE space_id = @space_id;

-- name: SpaceEraseRun :exec
UPDATE run SET answer = NULL, failure_message = NULL, source_folder = NULL WHERE space_id = @space_id;

-- name: SpaceEraseToolCall :exec
UPDATE tool_call SET arguments = NULL, output = NULL WHERE space_id = @space_id;

-- name: SpaceEraseFile :exec
UPDATE file SET path = NULL, sha256 = NULL WHERE space_id = @space_id;

-- name: MembershipSet :exec
INSERT INTO membership (space_id, account_id, role, since) VALUES (@space_id, @account_id, @role, @since)
ON CONFLICT (space_id, account_id) DO UPDATE SET role = excluded.role;

-- name: MembershipRemove :exec
DELETE FROM membership WHERE space_id = @space_id AND account_id = @account_id;
