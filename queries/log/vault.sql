-- Keys of subjects.

-- name: SubjectKey :one
SELECT wrapped FROM vault.subject_key WHERE subject = @subject;

-- name: SubjectKeyCreate :exec
INSERT INTO vault.subject_key (subject, wrapped) VALUES (@subject, @wrapped) ON CONFLICT DO NOTHING;

-- name: SubjectKeyDestroy :exec
INSERT INTO vault.subject_key (subject, wrapped, destroyed_at) VALUES (@subject, NULL, now())
ON CONFLICT (subject) DO UPDATE SET wrapped = NULL, destroyed_at = now() WHERE vault.subject_key.wrapped IS NOT NULL;

-- name: LogGateExclusive :exec
SELECT pg_advisory_xact_lock(7236838231894510694);

-- name: DeploymentCheck :one
SELECT key_check FROM vault.deployment;

-- name: DeploymentCheckSet :exec
INSERT INTO vault.deployment (key_check) VALUES (@key_check) ON CONFLICT DO NOTHING;

-- name: SubjectKeyGone :many
-- Which of the subjects have no key any more.
SELECT subject FROM vault.subject_key WHERE subject = ANY(@subjects::uuid[]) AND wrapped IS NULL;
