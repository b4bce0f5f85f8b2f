// Package audit proves what the log and the projections say.
//
// The log is a Merkle tree over its positions (RFC 6962). While there is news, some process signs its head at
// least every second and writes it into the database and into a file outside the database:
//
//	event -> position -> leaf of the tree -> signed checkpoint -> checkpoint file
//	   \________________ Verify recomputes all of it ______________________/
//
// What a checkpoint in the file covers cannot be altered, reordered, inserted or cut without Verify naming
// the first bad position, unless the signing key and the file are in the same wrong hands. See docs/audit.md.
//
//	Checkpointer  extends the tree and signs its head; any process may run it, one works at a time
//	Verify        recomputes hashes, tree, order and completeness of the log from the rows
//	Restored      begins a new incarnation after a restore from a backup, signed
//
// The projections are checked and rebuilt by folding the log again; the files rebuild*.go, compare*.go,
// swap*.go and replay*.go say how.
//
// It may import db, db/internal, domain, pgx, golang.org/x/mod/sumdb and the standard library.
package audit
