-- name: SpacePage :many
-- The spaces of an account with its role, newest first.
SELECT s.*, m.role FROM space s JOIN membership m ON m.space_id = s.id
WHERE m.account_id = @account_id AND NOT s.erased AND (s.created_at, s.id) < (@at::timestamptz, @id::uuid)
ORDER BY s.created_at DESC, s.id DESC LIMIT @lim;

-- name: SpaceRole :one
-- The role of an account in a space that is not erased. No row for strangers.
SELECT m.role FROM membership m JOIN space s ON s.id = m.space_id
WHERE m.space_id = @space_id AND m.account_id = @account_id AND NOT s.erased;

-- name: MembershipPage :many
SELECT m.space_id, m.account_id, m.role, m.since, a.name FROM membership m LEFT JOIN account a ON a.id = m.account_id
WHERE m.space_id = @space_id AND (m.since, m.account_id) < (@at::timestamptz, @id::uuid)
ORDER BY m.since DESC, m.account_id DESC LIMIT @lim;

-- name: AccountByID :one
SELECT * FROM account WHERE id = @id;

-- name: ClaimByID :one
SELECT * FROM claim WHERE id = @id;

-- name: TopicAccess :one
-- What decides whether an account may watch a topic: the stream that is the topic, and the account's role in
-- the space that owns it. Both are null for topics that belong to no space.
SELECT s.kind, s.space_id, sp.erased, m.role
FROM log.stream s
LEFT JOIN space sp ON sp.id = s.space_id
LEFT JOIN membership m ON m.space_id = s.space_id AND m.account_id = @account_id
WHERE s.id = @topic AND s.topic_id = s.id;

-- name: StreamOwner :one
-- The space that owns a stream, and the account's role in it; null for strangers. No row for what belongs to no space.
SELECT s.space_id, m.role FROM log.stream s
LEFT JOIN membership m ON m.space_id = s.space_id AND m.account_id = @account_id
WHERE s.id = @id AND s.space_id <> '00000000-0000-0000-0000-000000000000';
