-- The columns of River's job table that a query of ours reads. The table itself is made by River's migrator.
CREATE TABLE river_job (
    id           bigint PRIMARY KEY,
    kind         text   NOT NULL,
    args         jsonb  NOT NULL,
    state        text   NOT NULL,
    queue        text   NOT NULL,
    attempted_at timestamptz
);
