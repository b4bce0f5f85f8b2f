-- name: ClaimTake :exec
INSERT INTO claim (id, claim_kind, owner_kind, owner_id, version) VALUES (@id, @claim_kind, @owner_kind, @owner_id, @version)
ON CONFLICT (id) DO UPDATE SET claim_kind = excluded.claim_kind, owner_kind = excluded.owner_kind, owner_id = excluded.owner_id, version = excluded.version;

-- name: ClaimRelease :exec
UPDATE claim SET owner_kind = NULL, owner_id = NULL, version = @version WHERE id = @id;
