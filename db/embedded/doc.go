// Package embedded runs a private PostgreSQL cluster in a data folder, without
// any set-up by the user: it finds (or fetches) the binaries, initialises the
// folder, starts the server, and stops it with its last user. It may import the
// standard library, golang.org/x/sys and pgx (for readiness probes), nothing of
// ours. Besides the sandbox it is the only room that may run programs.
//
// # The folder
//
//	DIR/postgres         the cluster (PostgreSQL's own data directory, 0700)
//	DIR/postgres.init-*  an initialisation that was cut off; removed by the next start
//	DIR/socket           the unix socket (0700); there is no TCP listener
//	DIR/postgres.log     what the server says; at 16 MiB moved to postgres.log.1 at a start
//	DIR/start.lock       held exclusively while somebody initialises, starts or stops;
//	                     its presence also marks DIR as a data folder of Cairn
//	DIR/cluster.lock     held shared by every process that uses the cluster
//	DIR/postmaster.lock  held by every process of the server itself, see below
//
// The socket lies in a short folder under /run or /tmp when DIR is too long for
// a unix socket (107 bytes) or holds a comma; PostgreSQL records which one in
// postmaster.pid, and every process reads it there.
//
// # Who is alive
//
// A pid in a file proves nothing: after a power cut it may belong to anybody.
// So the server is started with an inherited descriptor of postmaster.lock,
// locked exclusively. The kernel keeps that lock until the last process of the
// cluster is gone, postmaster or orphaned backend, and drops it then, however
// it ended. Lock taken means alive, lock free means that nothing of the cluster
// runs, and postmaster.pid and the socket files are leftovers to remove. An
// initdb whose parent was killed holds it as well.
//
// # States
//
//	          initdb into a sibling, rename
//	(missing) ------------------------------> stopped
//	                                           |   ^
//	       first Open: start, wait until ready |   | last Close: fast shutdown
//	                                           v   |
//	Open attaches, Close leaves it running -- running
//	                                           |   ^
//	                    kill -9 of postmaster  |   | next Open: orphans quit,
//	                                           v   | leftovers removed, WAL recovery
//	                                          crashed
//
// Every arrow happens under start.lock. A cluster whose last user was killed
// keeps running, and the next Open attaches to it.
//
// # Root
//
// PostgreSQL refuses to run as root. Then the account is the owner of an existing
// DIR/postgres, else postgres, else nobody; DIR and the binaries must be reachable for it.
package embedded
