-- name: AccountInsert :exec
INSERT INTO account (id, account_kind, email, name, opened_at, version)
VALUES (@id, @account_kind, sqlc.narg(email), sqlc.narg(name), @opened_at, @version);

-- name: AccountDisable :exec
UPDATE account SET disabled = @disabled, version = @version WHERE id = @id;

-- name: AccountErase :exec
UPDATE account SET email = NULL, name = NULL, erased = true, version = @version WHERE id = @id;
