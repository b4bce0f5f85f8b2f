-- name: FileSet :exec
INSERT INTO file (id, space_id, path, sha256, media_type, executable, size, blob, stored_by, stored_at, version)
VALUES (@id, @space_id, sqlc.narg(path), sqlc.narg(sha256), @media_type, @executable, @size, @blob, @stored_by, @stored_at, @version)
ON CONFLICT (id) DO UPDATE SET path = excluded.path, sha256 = excluded.sha256, media_type = excluded.media_type, executable = excluded.executable,
    size = excluded.size, blob = excluded.blob, stored_by = excluded.stored_by, stored_at = excluded.stored_at, version = excluded.version;

-- name: FileRemove :exec
DELETE FROM file WHERE id = @id;
