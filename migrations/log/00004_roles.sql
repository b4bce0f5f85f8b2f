-- The roles of the two kinds of process, and exactly what each may do. Events can be added and read, never
-- changed; positions are given by log.log_sequence alone; only the server reads credentials and provider keys.
-- Version 3, before this one, is River's own schema, applied by its migrator.

-- +goose Up
SET lock_timeout = '5s';

-- +goose StatementBegin
-- Roles belong to the cluster, not to the database: another database may have made them, at this moment too.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['cairn_server', 'cairn_worker'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END $$;
-- +goose StatementEnd

REVOKE ALL ON SCHEMA log, vault FROM PUBLIC;
GRANT USAGE ON SCHEMA log, vault, public TO cairn_server, cairn_worker;

GRANT SELECT, INSERT ON log.event, log.command, log.log_tree, log.log_checkpoint TO cairn_server, cairn_worker;
GRANT SELECT, INSERT, UPDATE ON log.stream TO cairn_server, cairn_worker;
GRANT SELECT, INSERT ON log.unsequenced TO cairn_server, cairn_worker;
GRANT SELECT ON log.log_position, log.log_head, log.log_identity TO cairn_server, cairn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON log.lease TO cairn_server, cairn_worker;
GRANT DELETE ON log.command TO cairn_server;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA log TO cairn_server, cairn_worker;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA log FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA log TO cairn_server, cairn_worker;

GRANT SELECT, INSERT, UPDATE ON vault.subject_key TO cairn_server;
GRANT SELECT ON vault.subject_key, vault.deployment TO cairn_worker;
GRANT SELECT, INSERT ON vault.deployment TO cairn_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON vault.credential, vault.provider TO cairn_server;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO cairn_server, cairn_worker;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO cairn_server, cairn_worker;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO cairn_server, cairn_worker;
REVOKE INSERT, UPDATE, DELETE ON public.cairn_log_version, public.river_migration FROM cairn_server, cairn_worker;
