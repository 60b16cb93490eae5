#!/usr/bin/env bash
# Runs inside the database's container (`make backup`): on standard output a line with the rows of each table, counted by
# $1 (db/count_rows.sql) in the dump's own snapshot, then the whole database as a dump. Roles and passwords are not in it:
# migrate makes them.
set -euo pipefail
PGPASSWORD=${PGPASSWORD:-$(</run/secrets/superuser)}
export PGPASSWORD PGHOST=127.0.0.1 PGUSER=postgres PGDATABASE=jobbko

coproc session { exec psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1; }
ask=${session[1]} answers=${session[0]}
echo 'begin isolation level repeatable read read only; select pg_export_snapshot();' >&"$ask"
IFS= read -r snapshot <&"$answers" || { echo 'backup: the database does not answer. Next: docker compose ps db' >&2; exit 1; }
printf '%s\n' "$1" >&"$ask"
IFS= read -r counts <&"$answers"
printf '%s\n' "$counts"
pg_dump --format=custom --snapshot="$snapshot"
echo 'rollback;' >&"$ask"
