-- Files of spaces, the source that a conversation, a task and a run start from, and what a run changed.
--
-- Rows of before are given the source 'none'. That is right for all that came over REST; those of 'cairn run --dir' have
-- a folder in the log, which 'cairn replay rebuild --swap --allow-differences' puts here.

-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE conversation ADD COLUMN source_kind text NOT NULL DEFAULT 'none';
ALTER TABLE conversation ADD COLUMN source_root text;
ALTER TABLE conversation ADD COLUMN source_path text;
ALTER TABLE conversation ADD COLUMN source_folder text;
ALTER TABLE conversation ADD COLUMN source_files bigint;
ALTER TABLE conversation ADD COLUMN source_bytes bigint;
ALTER TABLE conversation ADD COLUMN source_manifest text;

ALTER TABLE task ADD COLUMN source_kind text NOT NULL DEFAULT 'none';
ALTER TABLE task ADD COLUMN source_root text;
ALTER TABLE task ADD COLUMN source_path text;
ALTER TABLE task ADD COLUMN source_folder text;
ALTER TABLE task ADD COLUMN source_files bigint;
ALTER TABLE task ADD COLUMN source_bytes bigint;
ALTER TABLE task ADD COLUMN source_manifest text;

ALTER TABLE run ADD COLUMN source_kind text NOT NULL DEFAULT 'none';
ALTER TABLE run ADD COLUMN source_root text;
ALTER TABLE run ADD COLUMN source_path text;
ALTER TABLE run ADD COLUMN source_folder text;
ALTER TABLE run ADD COLUMN source_files bigint;
ALTER TABLE run ADD COLUMN source_bytes bigint;
ALTER TABLE run ADD COLUMN source_manifest text;

-- What a run did to its files: the lists themselves are contents of the space.
CREATE TABLE run_changes (
    run_id        uuid        PRIMARY KEY,
    space_id      uuid        NOT NULL,
    files         bigint      NOT NULL,
    added         bigint      NOT NULL,
    modified      bigint      NOT NULL,
    deleted       bigint      NOT NULL,
    renamed       bigint      NOT NULL,
    mode          bigint      NOT NULL,
    type          bigint      NOT NULL,
    lines_added   bigint      NOT NULL,
    lines_removed bigint      NOT NULL,
    items_blob    text,
    items_size    bigint,
    diffs_blob    text,
    diffs_size    bigint,
    truncated     boolean     NOT NULL,
    recorded_at   timestamptz NOT NULL,
    version       bigint      NOT NULL
);

-- Files that a space has now. Paths compare by their bytes, so that a folder is one range of them.
CREATE TABLE file (
    id         uuid        PRIMARY KEY,
    space_id   uuid        NOT NULL,
    path       text        COLLATE "C",
    sha256     text,
    media_type text        NOT NULL,
    executable boolean     NOT NULL,
    size       bigint      NOT NULL,
    blob       text        NOT NULL,
    stored_by  text        NOT NULL,
    stored_at  timestamptz NOT NULL,
    version    bigint      NOT NULL
);
CREATE INDEX file_space ON file (space_id, stored_at DESC, id DESC);
CREATE INDEX file_path ON file (space_id, path);
