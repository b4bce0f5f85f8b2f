-- The projections. Unqualified names: the live schema is "view", a rebuild runs the same files elsewhere.
-- Rows are written by db/projection only, in the transaction of the event. A row depends on one stream, or
-- its columns are commutative over streams; there are no cross-table constraints, so that any order which
-- keeps each stream's order gives the same rows. Text that was sealed is plain here, and null once erased.
-- The column version is that of the stream's last event which changed the row.

-- +goose Up
SET lock_timeout = '5s';

CREATE TABLE claim (
    id         uuid   PRIMARY KEY,
    claim_kind text   NOT NULL,
    owner_kind text,
    owner_id   uuid,
    version    bigint NOT NULL
);

CREATE TABLE account (
    id           uuid        PRIMARY KEY,
    account_kind text        NOT NULL,
    email        text,
    name         text,
    erased       boolean     NOT NULL DEFAULT false,
    opened_at    timestamptz NOT NULL,
    version      bigint      NOT NULL
);

CREATE TABLE space (
    id         uuid        PRIMARY KEY,
    personal   boolean     NOT NULL,
    name       text,
    slug       text,
    erased     boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    version    bigint      NOT NULL
);

CREATE TABLE membership (
    space_id   uuid        NOT NULL,
    account_id uuid        NOT NULL,
    role       text        NOT NULL,
    since      timestamptz NOT NULL,
    PRIMARY KEY (space_id, account_id)
);
CREATE INDEX membership_account ON membership (account_id);

CREATE TABLE agent (
    id         uuid        PRIMARY KEY,
    space_id   uuid        NOT NULL,
    revision   bigint      NOT NULL,
    name       text,
    model      text        NOT NULL,
    revised_at timestamptz NOT NULL,
    version    bigint      NOT NULL
);
CREATE INDEX agent_space ON agent (space_id);

CREATE TABLE agent_revision (
    agent_id     uuid        NOT NULL,
    revision     bigint      NOT NULL,
    space_id     uuid        NOT NULL,
    name         text,
    model        text        NOT NULL,
    instructions text,
    tools        text[]      NOT NULL,
    revised_by   text        NOT NULL,
    revised_at   timestamptz NOT NULL,
    PRIMARY KEY (agent_id, revision)
);
CREATE INDEX agent_revision_space ON agent_revision (space_id);

CREATE TABLE conversation (
    id          uuid        PRIMARY KEY,
    space_id    uuid        NOT NULL,
    agent_id    uuid        NOT NULL,
    title       text,
    turns       bigint      NOT NULL,
    waiting     bigint      NOT NULL,
    active_run  uuid,
    opened_by   text        NOT NULL,
    opened_at   timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    version     bigint      NOT NULL
);
CREATE INDEX conversation_space ON conversation (space_id, changed_at DESC, id);

CREATE TABLE message (
    id              uuid        PRIMARY KEY,
    conversation_id uuid        NOT NULL,
    space_id        uuid        NOT NULL,
    turn_id         uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    author          text        NOT NULL,
    text            text,
    state           text        NOT NULL,
    turn_number     bigint,
    posted_at       timestamptz NOT NULL,
    version         bigint      NOT NULL
);
CREATE INDEX message_conversation ON message (conversation_id, version);
CREATE INDEX message_space ON message (space_id);
CREATE INDEX message_run ON message (run_id);

CREATE TABLE run (
    id              uuid        PRIMARY KEY,
    space_id        uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    turn_id         uuid        NOT NULL,
    agent_id        uuid        NOT NULL,
    model           text        NOT NULL,
    state           text        NOT NULL,
    queue           text        NOT NULL,
    epoch           bigint      NOT NULL DEFAULT 0,
    worker          text,
    host            text,
    steps           bigint      NOT NULL DEFAULT 0,
    input_tokens    bigint,
    output_tokens   bigint,
    cancel_asked    boolean     NOT NULL DEFAULT false,
    answer          text,
    failure_code    text,
    failure_message text,
    sandbox_report  jsonb,
    sandbox_usage   jsonb,
    limits_reached  jsonb       NOT NULL DEFAULT '[]',
    queued_at       timestamptz NOT NULL,
    started_at      timestamptz,
    ended_at        timestamptz,
    version         bigint      NOT NULL
);
CREATE INDEX run_conversation ON run (conversation_id, queued_at);
CREATE INDEX run_space ON run (space_id, queued_at DESC);
CREATE INDEX run_open ON run (state, queued_at) WHERE state IN ('queued', 'starting', 'running');

CREATE TABLE tool_call (
    run_id       uuid        NOT NULL,
    call         text        NOT NULL,
    space_id     uuid        NOT NULL,
    step         bigint      NOT NULL,
    tool         text        NOT NULL,
    arguments    text,
    state        text        NOT NULL,
    exit_code    bigint,
    output       text,
    output_bytes bigint,
    truncated    boolean,
    asked_at     timestamptz NOT NULL,
    called_at    timestamptz,
    returned_at  timestamptz,
    version      bigint      NOT NULL,
    PRIMARY KEY (run_id, call)
);
CREATE INDEX tool_call_space ON tool_call (space_id);
