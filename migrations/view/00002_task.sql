-- Tasks, whose attempts are runs; and titles in lower case, so that lists can be searched.
--
-- Rows of before get the values that a fold of their events gives, but for titles in letters that the database lowers
-- otherwise than the program does: 'cairn replay rebuild --swap --allow-differences' makes those equal too. The
-- defaults are for processes of the version before, which still write while this one comes.

-- +goose Up
SET lock_timeout = '5s';

ALTER TABLE conversation ADD COLUMN title_lower text COLLATE "C";
UPDATE conversation SET title_lower = lower(title) WHERE title IS NOT NULL;

CREATE TABLE task (
    id          uuid        PRIMARY KEY,
    space_id    uuid        NOT NULL,
    agent_id    uuid        NOT NULL,
    title       text,
    title_lower text COLLATE "C", -- the title in lower case, for searching
    model       text        NOT NULL,
    attempts    bigint      NOT NULL,
    active_run  uuid,
    last_run    uuid,
    outcome     text, -- of the newest attempt, null while it is active: then its run knows the state
    opened_by   text        NOT NULL,
    opened_at   timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    version     bigint      NOT NULL
);
CREATE INDEX task_space ON task (space_id, changed_at DESC, id);

-- A run belongs to a turn of a conversation, or to a task: never to both.
ALTER TABLE run ALTER COLUMN conversation_id DROP NOT NULL;
ALTER TABLE run ALTER COLUMN turn_id DROP NOT NULL;
ALTER TABLE run ADD COLUMN task_id uuid;
ALTER TABLE run ADD COLUMN attempt bigint NOT NULL DEFAULT 1;
ALTER TABLE run ADD COLUMN retry_of uuid;
ALTER TABLE run ADD COLUMN continues uuid;
CREATE INDEX run_task ON run (task_id, attempt) WHERE task_id IS NOT NULL;
