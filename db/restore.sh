#!/usr/bin/env bash
# Runs inside the database's container (`make restore`): the dump on standard input takes the place of the database,
# which must hold no job. $1 = rows of each table, as db/backup.sh counted them; counted again by $2 they must be the same.
set -euo pipefail
PGPASSWORD=${PGPASSWORD:-$(</run/secrets/superuser)}
export PGPASSWORD PGHOST=127.0.0.1 PGUSER=postgres
sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --dbname "$1" <<<"$2"; }

require_no_job() {
  local jobs
  jobs=$(sql jobbko 'select count(*) from job_queue')
  [[ $jobs == 0 ]] && return
  echo "restore: the database holds $jobs jobs; a backup goes into an empty one. Next: keep the old volume by another" \
    "name, or remove it (docker compose down; docker volume rm jobbko_pgdata), then make restore again" >&2
  exit 1
}

require_no_job
# Into a database beside it: what fails half-way leaves the empty one as it was.
discard() { sql postgres 'set client_min_messages = warning; drop database if exists jobbko_restored with (force)'; }
discard
trap discard EXIT
sql postgres 'create database jobbko_restored template template0'
pg_restore --exit-on-error --dbname jobbko_restored || {
  echo 'restore: the file cannot be read to its end; the database is as it was. Next: copy it again, or take another backup' >&2
  exit 1
}
counted=$(sql jobbko_restored "$2")
if [[ $counted != "$1" ]]; then
  printf 'restore: not all rows came back.\n  backup:   %s\n  restored: %s\nNext: take another backup file\n' "$1" "$counted" >&2
  exit 1
fi
# Runs that were going on when the backup was made are dead: the next sweep puts them back. Events are numbered anew.
sql jobbko_restored "update job_queue set lease_until = now() where status = 'running'; delete from worker;
                     select from renew_event_epoch()"
require_no_job # that came meanwhile
sql postgres 'drop database jobbko with (force)'
sql postgres 'alter database jobbko_restored rename to jobbko'
echo "restore: $counted"
