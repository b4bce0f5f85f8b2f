// Package migrations holds the schema as goose files, embedded into the binary.
//
// Log is the schema of the log itself: events, positions, vault, leases, queue and roles. It is applied
// once and only ever extended. View is the schema of the projections: its table names are unqualified and
// it is run with search_path set, once for the live schema and once for every rebuild beside it.
//
// It may import the standard library only.
package migrations

import "embed"

//go:embed log/*.sql
var Log embed.FS

//go:embed view/*.sql
var View embed.FS
