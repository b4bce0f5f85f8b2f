-- name: RunInsert :exec
INSERT INTO run (id, space_id, conversation_id, turn_id, task_id, attempt, retry_of, continues, agent_id, model, state, queue, queued_at, version,
    source_kind, source_root, source_path, source_folder, source_files, source_bytes, source_manifest)
VALUES (@id, @space_id, sqlc.narg(conversation_id), sqlc.narg(turn_id), sqlc.narg(task_id), @attempt, sqlc.narg(retry_of), sqlc.narg(continues), @agent_id, @model, 'queued', @queue, @queued_at, @version,
    @source_kind, sqlc.narg(source_root), sqlc.narg(source_path), sqlc.narg(source_folder), sqlc.narg(source_files), sqlc.narg(source_bytes), sqlc.narg(source_manifest));

-- name: RunStarted :exec
UPDATE run SET state = 'starting', epoch = @epoch, worker = @worker, host = @host,
    started_at = coalesce(started_at, @at), version = @version WHERE id = @id;

-- name: RunSandboxPrepared :exec
UPDATE run SET state = 'running', sandbox_report = @report, sandbox_usage = NULL, version = @version WHERE id = @id;

-- name: RunLimitReached :exec
UPDATE run SET limits_reached = limits_reached || @hit::jsonb, version = @version WHERE id = @id;

-- name: RunSandboxClosed :exec
UPDATE run SET sandbox_usage = @usage, version = @version WHERE id = @id;

-- name: RunModelAnswered :exec
-- Tokens that a provider did not report stay unknown: null plus anything is null only while nothing is known.
UPDATE run SET steps = steps + 1,
    input_tokens  = CASE WHEN sqlc.narg(input_tokens)::bigint  IS NULL THEN input_tokens  ELSE coalesce(input_tokens, 0)  + sqlc.narg(input_tokens)::bigint  END,
    output_tokens = CASE WHEN sqlc.narg(output_tokens)::bigint IS NULL THEN output_tokens ELSE coalesce(output_tokens, 0) + sqlc.narg(output_tokens)::bigint END,
    version = @version WHERE id = @id;

-- name: RunEgressDecided :exec
UPDATE run SET egress_allowed = coalesce(egress_allowed, 0) + @allowed::bigint, egress_refused = coalesce(egress_refused, 0) + @refused::bigint,
    version = @version WHERE id = @id;

-- name: RunEgressInsert :exec
INSERT INTO run_egress (run_id, version, space_id, decided_at, decisions) VALUES (@run_id, @version, @space_id, @decided_at, sqlc.narg(decisions));

-- name: RunTouch :exec
UPDATE run SET version = @version WHERE id = @id;

-- name: RunCancelAsked :exec
UPDATE run SET cancel_asked = true, version = @version WHERE id = @id;

-- name: RunRequeued :exec
UPDATE run SET state = 'queued', worker = NULL, queue = @queue, version = @version WHERE id = @id;

-- name: RunEnded :exec
UPDATE run SET state = @state, answer = sqlc.narg(answer), failure_code = sqlc.narg(failure_code),
    failure_message = sqlc.narg(failure_message), ended_at = @at, version = @version WHERE id = @id;

-- name: ToolCallInsert :exec
INSERT INTO tool_call (run_id, call, space_id, step, tool, arguments, state, asked_at, version)
VALUES (@run_id, @call, @space_id, @step, @tool, sqlc.narg(arguments), 'asked', @asked_at, @version);

-- name: ToolCallCalled :exec
UPDATE tool_call SET state = 'called', called_at = @at, version = @version WHERE run_id = @run_id AND call = @call;

-- name: ToolCallReturned :exec
UPDATE tool_call SET state = @outcome, exit_code = sqlc.narg(exit_code), output = sqlc.narg(output), output_bytes = @output_bytes,
    truncated = @truncated, returned_at = @at, version = @version WHERE run_id = @run_id AND call = @call;

-- name: RunChangesSet :exec
-- A worker that took the run over may record them again: what it saw last counts.
INSERT INTO run_changes (run_id, space_id, files, added, modified, deleted, renamed, mode, type, lines_added, lines_removed,
    items_blob, items_size, diffs_blob, diffs_size, truncated, recorded_at, version)
VALUES (@run_id, @space_id, @files, @added, @modified, @deleted, @renamed, @mode, @type, @lines_added, @lines_removed,
    sqlc.narg(items_blob), sqlc.narg(items_size), sqlc.narg(diffs_blob), sqlc.narg(diffs_size), @truncated, @recorded_at, @version)
ON CONFLICT (run_id) DO UPDATE SET files = excluded.files, added = excluded.added, modified = excluded.modified, deleted = excluded.deleted,
    renamed = excluded.renamed, mode = excluded.mode, type = excluded.type, lines_added = excluded.lines_added, lines_removed = excluded.lines_removed,
    items_blob = excluded.items_blob, items_size = excluded.items_size, diffs_blob = excluded.diffs_blob, diffs_size = excluded.diffs_size,
    truncated = excluded.truncated, recorded_at = excluded.recorded_at, version = excluded.version;
