-- name: SpaceByID :one
SELECT * FROM space WHERE id = @id;

-- name: SpaceOfAccount :many
SELECT s.*, m.role FROM space s JOIN membership m ON m.space_id = s.id WHERE m.account_id = @account_id ORDER BY s.created_at, s.id;

-- name: AccountByID :one
SELECT * FROM account WHERE id = @id;
