-- What the sandbox of a run used, and which limits it reached.

-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE run ADD COLUMN sandbox_usage jsonb;
ALTER TABLE run ADD COLUMN limits_reached jsonb NOT NULL DEFAULT '[]';
