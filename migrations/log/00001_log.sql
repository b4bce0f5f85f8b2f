-- The log: streams, events, and the positions that they get after commit.
--
-- An append writes log.stream, log.event and log.unsequenced in one flush. log.log_sequence then moves the
-- visible rows of log.unsequenced to log.log_position, dense and in an order that keeps every stream's own
-- order: see docs/adr/0001-the-log.md for the proof that no reader can miss an event.

-- +goose Up
SET lock_timeout = '5s';

CREATE SCHEMA log;

-- Which log this is. incarnation grows each time the database is restored from a backup, so that a reader
-- with a cursor of an earlier life is told to start over.
CREATE TABLE log.log_identity (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    log_id      uuid        NOT NULL DEFAULT gen_random_uuid(),
    incarnation bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO log.log_identity DEFAULT VALUES;

-- The head of each stream: the optimistic check of every append, and its order lock until commit.
CREATE TABLE log.stream (
    id       uuid   PRIMARY KEY,
    kind     text   NOT NULL,
    space_id uuid   NOT NULL,
    topic_id uuid   NOT NULL,
    version  bigint NOT NULL CHECK (version > 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- data is json, not jsonb: the bytes that were hashed must come back unchanged.
CREATE TABLE log.event (
    id           uuid        PRIMARY KEY,
    stream_id    uuid        NOT NULL,
    version      bigint      NOT NULL CHECK (version > 0),
    space_id     uuid        NOT NULL,
    topic_id     uuid        NOT NULL,
    kind         text        NOT NULL,
    schema       smallint    NOT NULL CHECK (schema > 0),
    data         json        NOT NULL,
    actor        text        NOT NULL,
    command_id   uuid        NOT NULL,
    cause_id     uuid        NOT NULL,
    trace_id     text        NOT NULL,
    recorded_at  timestamptz NOT NULL,
    leaf_version smallint    NOT NULL,
    leaf_hash    bytea       NOT NULL CHECK (length(leaf_hash) = 32),
    UNIQUE (stream_id, version)
);

-- Committed events without a position. cache 1 (the default) is required: the order of seq must be the
-- order of nextval calls. Vacuumed eagerly, since every row is deleted soon.
CREATE TABLE log.unsequenced (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id  uuid NOT NULL,
    stream_id uuid NOT NULL,
    space_id  uuid NOT NULL,
    topic_id  uuid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE log.log_position (
    position  bigint PRIMARY KEY CHECK (position > 0),
    event_id  uuid   NOT NULL UNIQUE,
    space_id  uuid   NOT NULL,
    topic_id  uuid   NOT NULL,
    stream_id uuid   NOT NULL
);
CREATE INDEX log_position_space ON log.log_position (space_id, position);
CREATE INDEX log_position_topic ON log.log_position (topic_id, position);

CREATE TABLE log.log_head (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    last bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
INSERT INTO log.log_head (last) VALUES (0);

-- Answers of idempotent commands, by actor and key. request_mac tells whether the same key came with the
-- same request, without keeping the request.
CREATE TABLE log.command (
    actor       text        NOT NULL,
    key         text        NOT NULL,
    request_mac bytea       NOT NULL,
    answer      json        NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (actor, key)
);
CREATE INDEX command_at ON log.command (at);

-- The Merkle tree of the log (RFC 6962) in the numbering of golang.org/x/mod/sumdb/tlog, and its signed heads.
CREATE TABLE log.log_tree (
    index bigint PRIMARY KEY,
    hash  bytea  NOT NULL CHECK (length(hash) = 32)
);
-- After a restore, an earlier incarnation may have signed the same size.
CREATE TABLE log.log_checkpoint (
    incarnation bigint      NOT NULL,
    size        bigint      NOT NULL CHECK (size >= 0),
    note        text        NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (incarnation, size)
);

-- Who is working on which run, by the database's clock. Only a hint for the sweep: the run's own stream
-- decides who may append to it.
CREATE TABLE log.lease (
    run_id          uuid        PRIMARY KEY,
    space_id        uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    epoch           bigint      NOT NULL,
    worker          text        NOT NULL,
    expires_at      timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX lease_expires ON log.lease (expires_at);

-- +goose StatementBegin
-- Moves the head of one stream from p_expected by p_n. It raises CN001 when another writer was first: the
-- rest of the flush is already on its way, so only an error can stop it. It runs with the caller's rights, and
-- without a path of its own: setting one costs a fifteenth of an append, and could only protect the caller from
-- itself.
CREATE FUNCTION log.log_advance(p_id uuid, p_kind text, p_space uuid, p_topic uuid, p_expected bigint, p_n bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF p_expected = 0 THEN
        INSERT INTO log.stream (id, kind, space_id, topic_id, version)
        VALUES (p_id, p_kind, p_space, p_topic, p_n) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE log.stream SET version = version + p_n
        WHERE id = p_id AND version = p_expected AND kind = p_kind AND space_id = p_space AND topic_id = p_topic;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream %/% is not at version %', p_kind, p_id, p_expected USING ERRCODE = 'CN001';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Gives positions to up to lim visible rows of log.unsequenced after low, and rings the bell once.
-- One statement and one message, never split by a client round trip: the lock is held to commit. Each
-- statement of this VOLATILE function has a snapshot of its own, taken after the lock.
CREATE FUNCTION log.log_sequence(lim integer, low bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    n integer;
BEGIN
    PERFORM pg_advisory_xact_lock(7236838231894510693);
    WITH moved AS (
        DELETE FROM log.unsequenced
        WHERE seq > low AND seq <= (SELECT max(seq) FROM (SELECT seq FROM log.unsequenced WHERE seq > low ORDER BY seq LIMIT lim) AS batch)
        RETURNING seq, event_id, space_id, topic_id, stream_id
    ), placed AS (
        INSERT INTO log.log_position (position, event_id, space_id, topic_id, stream_id)
        SELECT (SELECT last FROM log.log_head) + row_number() OVER (ORDER BY seq), event_id, space_id, topic_id, stream_id FROM moved
        RETURNING 1
    )
    SELECT count(*) INTO n FROM placed;
    IF n > 0 THEN
        -- Whatever the session says: a position that a reader has seen must survive a crash.
        PERFORM set_config('synchronous_commit', 'on', true);
        UPDATE log.log_head SET last = last + n;
        PERFORM pg_notify('cairn_position', '');
    END IF;
    RETURN n;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Raises CN001 unless each stream is at the version that a decision read. Version 0 means that it does not
-- exist. Nothing is locked: it is for streams that were read, not written.
CREATE FUNCTION log.log_assert(p_ids uuid[], p_versions bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moved uuid;
BEGIN
    SELECT r.id INTO moved
    FROM (SELECT unnest(p_ids) AS id, unnest(p_versions) AS version) AS r
    LEFT JOIN log.stream s ON s.id = r.id
    WHERE coalesce(s.version, 0) <> r.version LIMIT 1;
    IF moved IS NOT NULL THEN
        RAISE EXCEPTION 'stream % moved on since it was read', moved USING ERRCODE = 'CN001';
    END IF;
END $$;
-- +goose StatementEnd
