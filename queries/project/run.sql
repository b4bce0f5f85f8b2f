-- name: RunInsert :exec
INSERT INTO run (id, space_id, conversation_id, turn_id, agent_id, model, state, queue, queued_at, version)
VALUES (@id, @space_id, @conversation_id, @turn_id, @agent_id, @model, 'queued', @queue, @queued_at, @version);

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
