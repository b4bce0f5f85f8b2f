-- name: ConversationInsert :exec
INSERT INTO conversation (id, space_id, agent_id, title, title_lower, turns, waiting, opened_by, opened_at, changed_at, version,
    source_kind, source_root, source_path, source_folder, source_files, source_bytes, source_manifest)
VALUES (@id, @space_id, @agent_id, sqlc.narg(title), sqlc.narg(title_lower), 0, 0, @opened_by, @at, @at, @version,
    @source_kind, sqlc.narg(source_root), sqlc.narg(source_path), sqlc.narg(source_folder), sqlc.narg(source_files), sqlc.narg(source_bytes), sqlc.narg(source_manifest));

-- name: ConversationMessagePosted :exec
UPDATE conversation SET waiting = waiting + 1, changed_at = @at, version = @version WHERE id = @id;

-- name: ConversationTurnStarted :exec
UPDATE conversation SET waiting = waiting - 1, turns = @number, active_run = @run_id, changed_at = @at, version = @version WHERE id = @id;

-- name: ConversationTurnEnded :exec
-- A turn may end without ever having started: then it leaves the queue instead.
UPDATE conversation SET
    waiting    = CASE WHEN active_run = @run_id THEN waiting ELSE waiting - 1 END,
    active_run = CASE WHEN active_run = @run_id THEN NULL ELSE active_run END,
    changed_at = @at, version = @version WHERE id = @id;

-- name: MessageInsert :exec
INSERT INTO message (id, conversation_id, space_id, turn_id, run_id, author, text, state, posted_at, version)
VALUES (@id, @conversation_id, @space_id, @turn_id, @run_id, @author, sqlc.narg(text), 'waiting', @posted_at, @version);

-- name: MessageTurnStarted :exec
-- By the run, which is the message's own: an index finds it, however long the conversation is.
UPDATE message SET state = 'active', turn_number = @turn_number WHERE run_id = @run_id AND turn_id = @turn_id;

-- name: MessageTurnEnded :exec
UPDATE message SET state = @outcome WHERE run_id = @run_id AND turn_id = @turn_id;
