-- Statements of `migrate`, run as superuser under its lock. Those that take a role's or a database's name are composed
-- in Python, since PostgreSQL takes no parameters there.

-- name: is_superuser
select rolsuper from pg_roles where rolname = current_user

-- name: try_lock
-- Asked again and again instead of waited for inside the statement: a waiting statement holds a snapshot, and an
-- index that the other one makes concurrently would wait for that for ever.
select pg_try_advisory_lock(%(space)s, %(number)s)

-- name: notice_a_dead_client
-- Else the server would go on with a file, and commit it, after the migrate that sent it was killed.
set client_connection_check_interval = '1s'

-- name: database_exists
select exists (select from pg_database where datname = %(name)s)

-- name: has_history
select to_regclass('public.schema_migrations') is not null

-- name: history
select version, name from public.schema_migrations

-- name: is_open_to_all
select has_database_privilege('public', current_database(), 'connect')
    or has_database_privilege('public', current_database(), 'temporary')

-- name: other_databases_open_to_all
-- Those that every server has, where it holds nothing else beside this one; on a shared server they are not ours.
select datname from pg_database
 where datname in ('postgres', 'template1') and datname <> current_database() and datallowconn
   and (has_database_privilege('public', datname, 'connect') or has_database_privilege('public', datname, 'temporary'))
   and not exists (select from pg_database where not datistemplate and datname not in ('postgres', current_database()))
 order by datname

-- name: large_objects_are_open_to_all
select has_function_privilege('public', 'lo_create(oid)', 'execute')
    or has_function_privilege('public', 'lo_creat(integer)', 'execute')
    or has_function_privilege('public', 'lo_from_bytea(oid, bytea)', 'execute')

-- name: close_large_objects
revoke execute on function lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) from public

-- name: roles_shut_out
select role
  from unnest(%(roles)s::text[]) as role
 where not has_database_privilege(role, current_database(), 'connect')

-- name: role_is_member
-- No row: there is no such role.
select pg_has_role(oid, %(group)s, 'member') from pg_roles where rolname = %(role)s

-- name: role_settings
select coalesce(rolconfig, '{}') from pg_roles where rolname = %(role)s

-- name: role_verifier
select rolpassword from pg_authid where rolname = %(role)s

-- name: record_job_type
-- What workers (payload_schema) and operators (pause) write is left alone; an unchanged row is not written.
insert into public.job_type as known (
    name, role, lease_seconds, longest_run_seconds, stall_seconds, batch_size, payload_limit_bytes,
    keep_completed_days, keep_error_days, follow_ups, backoff_base_seconds, backoff_cap_seconds, backoff_jitter)
values (
    %(name)s, %(role)s, %(lease_seconds)s, %(longest_run_seconds)s, %(stall_seconds)s, %(batch_size)s,
    %(payload_limit_bytes)s, %(keep_completed_days)s, %(keep_error_days)s, %(follow_ups)s,
    %(backoff_base_seconds)s, %(backoff_cap_seconds)s, %(backoff_jitter)s)
on conflict (name) do update
   set role = excluded.role,
       lease_seconds = excluded.lease_seconds,
       longest_run_seconds = excluded.longest_run_seconds,
       stall_seconds = excluded.stall_seconds,
       batch_size = excluded.batch_size,
       payload_limit_bytes = excluded.payload_limit_bytes,
       keep_completed_days = excluded.keep_completed_days,
       keep_error_days = excluded.keep_error_days,
       follow_ups = excluded.follow_ups,
       backoff_base_seconds = excluded.backoff_base_seconds,
       backoff_cap_seconds = excluded.backoff_cap_seconds,
       backoff_jitter = excluded.backoff_jitter
 where (known.role, known.lease_seconds, known.longest_run_seconds, known.stall_seconds, known.batch_size,
        known.payload_limit_bytes, known.keep_completed_days, known.keep_error_days, known.follow_ups,
        known.backoff_base_seconds, known.backoff_cap_seconds, known.backoff_jitter)
       is distinct from
       (excluded.role, excluded.lease_seconds, excluded.longest_run_seconds, excluded.stall_seconds,
        excluded.batch_size, excluded.payload_limit_bytes, excluded.keep_completed_days, excluded.keep_error_days,
        excluded.follow_ups, excluded.backoff_base_seconds, excluded.backoff_cap_seconds, excluded.backoff_jitter)
returning name
