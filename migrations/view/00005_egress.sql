-- What sandboxes asked for outside: totals on the run, and the decisions of each event, null once erased. Runs of
-- before have recorded none, which is what null says.

-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE run ADD COLUMN egress_allowed bigint, ADD COLUMN egress_refused bigint;

CREATE TABLE run_egress (
    run_id     uuid        NOT NULL,
    version    bigint      NOT NULL,
    space_id   uuid        NOT NULL,
    decided_at timestamptz NOT NULL,
    decisions  jsonb,
    PRIMARY KEY (run_id, version)
);
CREATE INDEX run_egress_space ON run_egress (space_id);
