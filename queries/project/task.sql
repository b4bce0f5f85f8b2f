-- name: TaskInsert :exec
INSERT INTO task (id, space_id, agent_id, title, title_lower, model, attempts, opened_by, opened_at, changed_at, version,
    source_kind, source_root, source_path, source_folder, source_files, source_bytes, source_manifest)
VALUES (@id, @space_id, @agent_id, sqlc.narg(title), sqlc.narg(title_lower), @model, 0, @opened_by, @at, @at, @version,
    @source_kind, sqlc.narg(source_root), sqlc.narg(source_path), sqlc.narg(source_folder), sqlc.narg(source_files), sqlc.narg(source_bytes), sqlc.narg(source_manifest));

-- name: TaskAttemptStarted :exec
UPDATE task SET attempts = @attempt, active_run = @run_id, last_run = @run_id, outcome = NULL, changed_at = @at, version = @version WHERE id = @id;

-- name: TaskAttemptEnded :exec
UPDATE task SET active_run = NULL, outcome = @outcome, changed_at = @at, version = @version WHERE id = @id;
