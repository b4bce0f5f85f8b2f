-- Credentials. Only hashes are stored, and not even those are ever in an event.

-- name: CredentialInsert :exec
INSERT INTO vault.credential (id, account_id, kind, hash, method, client, used_at, expires_at)
VALUES (@id, @account_id, @kind, @hash, sqlc.narg(method), sqlc.narg(client), now(), now() + make_interval(secs => @seconds::float8));

-- name: CredentialForgetExpired :exec
DELETE FROM vault.credential WHERE account_id = @account_id AND expires_at <= now();

-- name: CredentialPassword :one
SELECT hash FROM vault.credential WHERE account_id = @account_id AND kind = 'password';

-- name: CredentialPasswordSet :exec
INSERT INTO vault.credential (id, account_id, kind, hash) VALUES (@id, @account_id, 'password', @hash)
ON CONFLICT (account_id) WHERE kind = 'password' DO UPDATE SET hash = excluded.hash, created_at = now();

-- name: CredentialOthersForget :exec
-- After a new password only the session that set it goes on, and no code is left that would get around it.
DELETE FROM vault.credential WHERE account_id = @account_id AND kind IN ('session', 'code') AND id <> @keep;

-- name: CredentialCodeTake :one
-- Of any number of callers with one code exactly one gets the row.
DELETE FROM vault.credential WHERE account_id = @account_id AND kind = 'code' AND hash = @hash AND expires_at > now() RETURNING id;

-- name: CredentialSessionByHash :one
SELECT * FROM vault.credential WHERE kind = 'session' AND hash = @hash AND expires_at > now();

-- name: CredentialSessionSlide :exec
-- Not at every request: a row that is written once a minute is as good.
UPDATE vault.credential SET used_at = now(), expires_at = now() + make_interval(secs => @seconds::float8)
WHERE id = @id AND kind = 'session' AND used_at < now() - interval '1 minute';

-- name: CredentialSessionExists :one
SELECT EXISTS (SELECT FROM vault.credential WHERE id = @id AND account_id = @account_id AND kind = 'session' AND expires_at > now());

-- name: CredentialSessionForget :exec
DELETE FROM vault.credential WHERE id = @id AND account_id = @account_id AND kind = 'session';

-- name: CredentialSessionTrim :exec
-- An account keeps its newest sessions.
DELETE FROM vault.credential WHERE id IN (
    SELECT c.id FROM vault.credential c WHERE c.account_id = @account_id AND c.kind = 'session' ORDER BY c.created_at DESC, c.id DESC OFFSET @keep);

-- name: CredentialSessionPage :many
SELECT * FROM vault.credential
WHERE account_id = @account_id AND kind = 'session' AND expires_at > now() AND (created_at, id) < (@at::timestamptz, @id::uuid)
ORDER BY created_at DESC, id DESC LIMIT @lim;

-- name: CredentialKnown :one
-- Whether the account has ever signed in, or still can.
SELECT EXISTS (SELECT FROM vault.credential WHERE account_id = @account_id AND (kind IN ('password', 'session') OR expires_at > now()));
