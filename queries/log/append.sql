-- The statements of one append flush, in their order.

-- name: LogGate :exec
SELECT log.log_gate(@sealed_by::uuid[]);

-- name: StreamLock :exec
SELECT pg_advisory_xact_lock(@key::bigint);

-- name: StreamAssert :exec
SELECT log.log_assert(@ids::uuid[], @versions::bigint[]);

-- name: StreamAdvance :exec
SELECT log.log_advance(@id::uuid, @kind::text, @space_id::uuid, @topic_id::uuid, @expected::bigint, @n::bigint);

-- name: EventInsert :exec
INSERT INTO log.event (id, stream_id, version, space_id, topic_id, kind, schema, data, actor, command_id, cause_id, trace_id, recorded_at, leaf_version, leaf_hash)
SELECT unnest(@ids::uuid[]), unnest(@stream_ids::uuid[]), unnest(@versions::bigint[]), unnest(@space_ids::uuid[]), unnest(@topic_ids::uuid[]),
       unnest(@kinds::text[]), unnest(@schemas::smallint[]), unnest(@datas::text[])::json, unnest(@actors::text[]), unnest(@command_ids::uuid[]),
       unnest(@cause_ids::uuid[]), unnest(@trace_ids::text[]), unnest(@recorded_ats::timestamptz[]), unnest(@leaf_versions::smallint[]), unnest(@leaf_hashes::bytea[]);

-- name: UnsequencedInsert :exec
-- The order of the arrays is the order of the versions: seq must ascend inside a stream.
INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id)
SELECT unnest(@ids::uuid[]), unnest(@stream_ids::uuid[]), unnest(@space_ids::uuid[]), unnest(@topic_ids::uuid[]);

-- name: CommandInsert :exec
INSERT INTO log.command (actor, key, request_mac, answer, at) VALUES (@actor, @key, @request_mac, @answer, @at);
