#!/usr/bin/env bash
# The operator's drill, end to end on this machine, in a temporary folder: it needs bash, curl, and an installed
# PostgreSQL of version 15 or later with pg_dump. Exit code 0: everything held. See drill.md.
#
#   drill.sh restore             back up under load, lose everything, restore, rebuild, see clients start over
#   drill.sh upgrade OLD_CAIRN   go from an older binary and its schema to this one, under load
#
# CAIRN names the binary, bin/cairn unless set; DRILL_PORT the first of two free ports, 18080 unless set.
set -euo pipefail

CAIRN=$(realpath "${CAIRN:-bin/cairn}")
PORT=${DRILL_PORT:-18080}
WORK=$(mktemp -d /var/tmp/cairn-drill-XXXXXX)
chmod 755 "$WORK"
JAR=$WORK/cookies
PIDS=()

say() { printf '== %s\n' "$*" >&2; }
fail() {
	printf 'drill failed: %s\n' "$*" >&2
	exit 1
}

# stop_clusters ends what a drill that failed has left running.
stop_clusters() {
	local dir
	for dir in "$WORK"/*/postgres; do
		[ ! -e "$dir/postmaster.pid" ] || as_postgres "$PG_BIN/pg_ctl" -D "$dir" -m immediate stop >/dev/null || true
	done
}

cleanup() {
	local status=$?
	touch "$WORK/stop"
	for pid in ${PIDS[@]+"${PIDS[@]}"}; do kill -TERM "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
	[ "$status" = 0 ] || tail -n 20 "$WORK"/*.log >&2 || true
	[ "$status" = 0 ] || stop_clusters
	rm -rf "$WORK"
	exit "$status"
}
trap cleanup EXIT

# The programs of the newest installed PostgreSQL; the embedded cluster is made with the same ones, since pg_dump
# must be as new as the server.
PG_BIN=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)}
[ -x "$PG_BIN/pg_dump" ] || fail "no pg_dump in '$PG_BIN': install PostgreSQL, or name its programs' folder with PG_BIN"
export PG_BIN

# as_postgres runs a program as the account that runs the cluster.
as_postgres() {
	if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

# field prints the first value of a name in the JSON on its input.
field() { sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" | head -n 1; }

# api asks a replica: api REPLICA METHOD PATH [BODY] [curl options]. A status of 400 or more fails.
api() {
	local replica=$1 method=$2 path=$3 body=${4:-}
	shift $(($# > 4 ? 4 : $#))
	curl -sS --fail-with-body -b "$JAR" -c "$JAR" -X "$method" -H 'Content-Type: application/json' \
		${body:+-d "$body"} "$@" "http://127.0.0.1:$((PORT + replica))/api/v1$path"
}

wait_ready() {
	local replica
	for replica in "$@"; do
		for _ in $(seq 300); do
			curl -sf "http://127.0.0.1:$((PORT + replica))/readyz" >/dev/null && continue 2
			sleep 0.1
		done
		fail "the server on port $((PORT + replica)) did not become ready within 30 s"
	done
}

# up starts two replicas and a worker on a data folder.
up() {
	"$1" up --data "$2" --listen "127.0.0.1:$PORT" --replicas 2 >"$WORK/up.log" 2>&1 &
	UP=$!
	PIDS+=("$UP")
	wait_ready 0 1
}

down() {
	kill -TERM "$UP"
	wait "$UP" || fail "'cairn up' ended with $?"
}

# sign_in redeems the code of the first start and opens a conversation.
sign_in() {
	local code email
	code=$(field code <"$1/first-login.json")
	email=$(field email <"$1/first-login.json")
	api 0 POST /login "{\"email\":\"$email\",\"code\":\"$code\"}" >/dev/null
	SPACE=$(api 0 GET /spaces | field space_id)
	AGENT=$(api 0 GET "/spaces/$SPACE/agents" | field agent_id)
	THREAD=$(api 0 POST "/spaces/$SPACE/conversations" "{\"agent_id\":\"$AGENT\",\"title\":\"Drill\"}" | field conversation_id)
}

# load posts messages until it is told to stop, in turn to both replicas. Each has its own key, and is sent again
# under the same key until it is accepted: what is accepted is in the file, once.
load() {
	local n=0 replica
	rm -f "$WORK/stop"
	while [ ! -e "$WORK/stop" ]; do
		n=$((n + 1))
		until replica=$((RANDOM % 2)) && api "$replica" POST "/conversations/$THREAD/messages" "{\"text\":\"\$ echo $n\"}" \
			-H "Idempotency-Key: $1-$n" --max-time 10 >>"$WORK/accepted-$1" 2>>"$WORK/refused-$1"; do
			[ ! -e "$WORK/stop" ] || return 0
			sleep 0.1
		done
		echo >>"$WORK/accepted-$1"
		sleep 0.1
	done
}

start_load() {
	load "$1" &
	LOAD=$!
}

stop_load() {
	touch "$WORK/stop"
	wait "$LOAD"
	grep -o '"run_id":"[^"]*"' "$WORK/accepted-$1" | sort -u >"$WORK/runs-$1"
	say "$(wc -l <"$WORK/runs-$1") messages were accepted"
	[ -s "$WORK/runs-$1" ] || fail "no message was accepted"
}

# answered waits until the run of each accepted message has succeeded.
answered() {
	local run state
	while IFS= read -r run; do
		run=${run#*:\"} run=${run%\"}
		for _ in $(seq 600); do
			state=$(api 0 GET "/runs/$run" | field state)
			case $state in
			succeeded) continue 2 ;;
			failed | cancelled) fail "run $run is $state" ;;
			esac
			sleep 0.1
		done
		fail "run $run is still $state after 60 s"
	done <"$WORK/runs-$1"
}

proved() {
	"$CAIRN" log verify --blobs --quiet --data "$1"
	"$CAIRN" replay verify --quiet --data "$1"
}

backup() {
	local dump=("$PG_BIN/pg_dump" "--host=$1/socket" --username=postgres --format=custom)
	mkdir "$WORK/backup"
	as_postgres "${dump[@]}" --exclude-schema=vault --exclude-schema='view*' cairn >"$WORK/backup/log.dump"
	as_postgres "${dump[@]}" --schema=vault cairn >"$WORK/backup/vault.dump"
	cp -a "$1/blob" "$1/checkpoints.log" "$1/keys" "$WORK/backup/"
}

# restore makes a new cluster of the backup. The vault comes after the log.
restore() {
	"$CAIRN" migrate up --quiet --data "$1" 2>>"$WORK/migrate.log"
	as_postgres "$PG_BIN/pg_ctl" -D "$1/postgres" -w -l /dev/null -o "-c listen_addresses= -k $1/socket" start >/dev/null
	as_postgres "$PG_BIN/dropdb" --host="$1/socket" --username=postgres cairn
	as_postgres "$PG_BIN/createdb" --host="$1/socket" --username=postgres cairn
	local dump
	for dump in log vault; do
		as_postgres "$PG_BIN/pg_restore" --host="$1/socket" --username=postgres --dbname=cairn --exit-on-error <"$WORK/backup/$dump.dump"
	done
	as_postgres "$PG_BIN/pg_ctl" -D "$1/postgres" -w -m fast stop >/dev/null
	rm -rf "$1/keys" "$1/blob"
	cp -a "$WORK/backup/keys" "$WORK/backup/blob" "$WORK/backup/checkpoints.log" "$1/"
}

drill_restore() {
	local one=$WORK/one two=$WORK/two page cursor status kept
	say "an installation with two replicas, under load"
	up "$CAIRN" "$one"
	sign_in "$one"
	start_load before
	sleep 3
	say "back up log, vault, keys and blobs while everything runs"
	backup "$one"
	sleep 2
	stop_load before
	answered before
	page=$(api 1 GET "/spaces/$SPACE/events?after=0&limit=500")
	cursor=$(field next_after <<<"$page")
	kept=$(field incarnation <<<"$page")
	down
	say "lose everything"
	rm -rf "$one"
	say "restore into a new cluster"
	restore "$two"
	status=0
	"$CAIRN" log verify --quiet --data "$two" 2>"$WORK/verify.log" || status=$?
	[ "$status" = 7 ] || fail "log verify ended with $status, want 7: the checkpoint file knows that the end is missing"
	"$CAIRN" migrate up --quiet --data "$two" 2>>"$WORK/migrate.log"
	"$CAIRN" admin restored --quiet --data "$two"
	"$CAIRN" replay rebuild --swap --allow-differences --quiet --data "$two"
	proved "$two"
	say "clients go on: the session counts, the old cursor is refused, a new beginning works"
	up "$CAIRN" "$two"
	api 0 GET /me >/dev/null
	status=$(api 0 GET "/spaces/$SPACE/events?after=$cursor" 2>/dev/null || true)
	[ "$(field code <<<"$status")" = start_over ] || fail "a cursor of the lost end was answered with: $status"
	page=$(api 1 GET "/spaces/$SPACE/events?after=0&limit=500")
	[ "$(field incarnation <<<"$page")" -gt "$kept" ] || fail "the incarnation is still $kept"
	THREAD=$(api 0 POST "/spaces/$SPACE/conversations" "{\"agent_id\":\"$AGENT\",\"title\":\"After\"}" | field conversation_id)
	start_load after
	sleep 2
	stop_load after
	answered after
	down
	proved "$two"
}

# start_server and start_worker are the processes of an installation with a database of its own. The addresses go
# through the environment, since everybody can read arguments.
start_server() {
	CAIRN_DATABASE_URL="postgres:///cairn?host=$SOCKET&user=cairn_server" \
		"$1" server --data "$DIR" --listen "127.0.0.1:$((PORT + $2))" >>"$WORK/server-$2.log" 2>&1 &
	SERVERS[$2]=$!
	PIDS+=("$!")
	wait_ready "$2"
}

start_worker() {
	CAIRN_DATABASE_URL="postgres:///cairn?host=$SOCKET&user=cairn_worker" \
		"$1" worker --data "$DIR" --server "http://127.0.0.1:$PORT" >>"$WORK/worker.log" 2>&1 &
	WORKER=$!
	PIDS+=("$!")
}

stop_process() {
	kill -TERM "$1"
	wait "$1" || fail "process $1 ended with $? after SIGTERM"
}

drill_upgrade() {
	local old new=$CAIRN replica worker
	old=$(realpath "$1")
	DIR=$WORK/one SOCKET=$WORK/one/socket
	SERVERS=()
	say "an installation of $("$old" version | head -n 1), under load"
	up "$old" "$DIR"
	sign_in "$DIR"
	down
	as_postgres "$PG_BIN/pg_ctl" -D "$DIR/postgres" -w -l /dev/null -o "-c listen_addresses= -k $SOCKET" start >/dev/null
	export DATABASE_URL="postgres:///cairn?host=$SOCKET&user=postgres"
	for replica in 0 1; do start_server "$old" "$replica"; done
	start_worker "$old"
	start_load during
	sleep 2
	say "migrate to the schema of $("$new" version | head -n 1), while the old processes serve"
	"$new" migrate up --data "$DIR" 2>&1 | grep '^migrated' >&2 || say "no step was pending"
	sleep 1
	say "replace the servers one after the other, then the worker"
	for replica in 0 1; do
		stop_process "${SERVERS[$replica]}"
		start_server "$new" "$replica"
		sleep 1
	done
	worker=$WORKER
	start_worker "$new"
	stop_process "$worker"
	say "make the projections anew beside the live ones, and swap"
	"$new" replay rebuild --swap --allow-differences --quiet --data "$DIR"
	sleep 1
	stop_load during
	answered during
	stop_process "$WORKER"
	for replica in 0 1; do stop_process "${SERVERS[$replica]}"; done
	proved "$DIR"
	as_postgres "$PG_BIN/pg_ctl" -D "$DIR/postgres" -w -m fast stop >/dev/null
}

case "${1:-}" in
restore) drill_restore ;;
upgrade)
	[ $# = 2 ] && [ -x "$2" ] || fail "name the older binary: drill.sh upgrade OLD_CAIRN"
	drill_upgrade "$2"
	;;
*)
	sed -nE '2,8s/^# ?//p' "$0" >&2
	exit 2
	;;
esac
say "the drill held"
