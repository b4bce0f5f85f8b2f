-- name: FileByID :one
SELECT * FROM file WHERE id = @id;

-- name: FilePage :many
-- Files of a space below a folder whose path holds a text, in any case, newest first.
SELECT * FROM file
WHERE space_id = @space_id AND (stored_at, id) < (@at::timestamptz, @id::uuid)
    AND (@folder::text = '' OR path >= @folder::text || '/' AND path < @folder::text || '0')
    AND strpos(lower(path), lower(@text::text)) > 0
ORDER BY stored_at DESC, id DESC LIMIT @lim;

-- name: FileBelow :many
-- Everything below a folder, for a manifest.
SELECT path, sha256, blob, size, executable FROM file
WHERE space_id = @space_id AND (@folder::text = '' OR path >= @folder::text || '/' AND path < @folder::text || '0')
ORDER BY path LIMIT @lim;

-- name: FileFolders :many
-- The folders at the top of a space, and '' for all of it.
SELECT CASE WHEN path LIKE '%/%' AND NOT whole THEN split_part(path, '/', 1) ELSE '' END::text AS folder, count(*) AS files, sum(size)::bigint AS bytes
FROM file CROSS JOIN (VALUES (true), (false)) AS part (whole)
WHERE space_id = @space_id AND path IS NOT NULL AND (whole OR path LIKE '%/%')
GROUP BY 1 ORDER BY 1 LIMIT @lim;

-- name: FileFolderAmong :many
-- Which of the paths are folders, because there are files below them.
SELECT p.path::text AS path FROM (SELECT unnest(@paths::text[]) AS path) AS p
WHERE EXISTS (SELECT FROM file f WHERE f.space_id = @space_id AND f.path >= p.path || '/' AND f.path < p.path || '0')
LIMIT 1;

-- name: RunChangesByID :one
SELECT * FROM run_changes WHERE run_id = @run_id;
