-- The vault: wrapped keys of subjects (spaces and accounts), credentials and provider keys. It is never part
-- of a dump of the log; a subject whose key is destroyed here is erased everywhere.

-- +goose Up
SET lock_timeout = '5s';

CREATE SCHEMA vault;

-- wrapped is null once the key was destroyed; the row stays, so that "erased" differs from "unknown".
CREATE TABLE vault.subject_key (
    subject      uuid        PRIMARY KEY,
    wrapped      bytea,
    created_at   timestamptz NOT NULL DEFAULT now(),
    destroyed_at timestamptz,
    CHECK ((wrapped IS NULL) = (destroyed_at IS NOT NULL))
);

-- A value that only the right deployment key can give: a database and a key that do not belong together are
-- noticed before anything is sealed under the wrong one.
CREATE TABLE vault.deployment (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    key_check bytea   NOT NULL
);

-- Secrets with which people and programs sign in: hashes only.
CREATE TABLE vault.credential (
    id         uuid        PRIMARY KEY,
    account_id uuid        NOT NULL,
    kind       text        NOT NULL,
    hash       bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
);

-- Keys of model providers, wrapped by the deployment key. Only the model gateway reads them.
CREATE TABLE vault.provider (
    name       text        PRIMARY KEY,
    wrapped    bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- +goose StatementBegin
-- The first statement of every append: takes the gate in shared mode (a swap or an erasure holds it
-- exclusively), then refuses with CN002 when a key that sealed the append's fields has been destroyed. Each
-- statement of this VOLATILE function sees what was committed before it began. The subjects differ from each other.
CREATE FUNCTION log.log_gate(sealed_by uuid[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone uuid;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7236838231894510694);
    IF cardinality(sealed_by) > 0
    AND (SELECT count(*) FROM vault.subject_key s WHERE s.subject = ANY (sealed_by) AND s.wrapped IS NOT NULL) < cardinality(sealed_by) THEN
        SELECT k INTO gone FROM unnest(sealed_by) AS k
        WHERE NOT EXISTS (SELECT FROM vault.subject_key s WHERE s.subject = k AND s.wrapped IS NOT NULL) LIMIT 1;
        RAISE EXCEPTION 'the key of subject % is destroyed', gone USING ERRCODE = 'CN002';
    END IF;
END $$;
-- +goose StatementEnd
