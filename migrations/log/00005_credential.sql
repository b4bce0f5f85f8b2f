-- What signing in needs of the vault: a credential is found by its hash, an account has one password, and a
-- session says when and with what it was used. All of it stays out of the log and of the projections.

-- +goose Up
SET lock_timeout = '5s';

-- method says how a session was made: "code" or "password". client is what the browser called itself.
ALTER TABLE vault.credential ADD COLUMN method text, ADD COLUMN client text, ADD COLUMN used_at timestamptz;

CREATE UNIQUE INDEX credential_hash ON vault.credential (hash) WHERE kind IN ('session', 'code');
CREATE UNIQUE INDEX credential_password ON vault.credential (account_id) WHERE kind = 'password';
CREATE INDEX credential_account ON vault.credential (account_id, kind, created_at DESC, id DESC);
