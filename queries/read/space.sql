-- name: SpaceByID :one
SELECT * FROM space WHERE id = @id;

-- name: SpaceOfAccount :many
SELECT s.*, m.role FROM space s JOIN membership m ON m.space_id = s.id WHERE m.account_id = @account_id ORDER BY s.created_at, s.id;

-- name: AccountByID :one
SELECT * FROM account WHERE id = @id;

-- name: TopicAccess :one
-- What decides whether an account may watch a topic: the stream that is the topic, and the account's role in
-- the space that owns it. Both are null for topics that belong to no space.
SELECT s.kind, s.space_id, sp.erased, m.role
FROM log.stream s
LEFT JOIN space sp ON sp.id = s.space_id
LEFT JOIN membership m ON m.space_id = s.space_id AND m.account_id = @account_id
WHERE s.id = @topic AND s.topic_id = s.id;
