-- Roles and the list of applied files. First of the numbered files, each of which is one transaction that first
-- records its own number, so that two runners of the same file collide at once and a broken file leaves nothing.
-- Passwords and the workers' login roles are set by `migrate`; a role without a password cannot log in.

begin;

create table if not exists schema_migrations (
    version    integer     primary key,
    name       text        not null,
    applied_at timestamptz not null default now()
);
insert into schema_migrations (version, name) values (1, 'roles');
comment on table schema_migrations is 'Files of db/init that were applied to this database';
grant select on schema_migrations to public;

-- Roles belong to the server, not to the database: another database may have made them already, even just now.
do $$
declare
    wanted text;
begin
    foreach wanted in array array[
        'jobbko_owner nologin',      -- owns every object; nobody logs in as it
        'jobbko_worker nologin',     -- group of the workers' logins: may execute the worker functions
        'jobbko_operator login',     -- command line
        'jobbko_admin login',        -- admin view and its API: an operator who knows accounts and sessions
        'jobbko_delivery login',     -- sends events to other programs
        'jobbko_producer login',     -- programs that only enqueue
        'jobbko_plain login',        -- foreign programs that read and write job_queue with plain SQL
        'jobbko_metrics login',      -- gauges of the queue's state
        'jobbko_reader login'        -- people who look
    ] loop
        begin
            execute 'create role ' || wanted;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
end
$$;

grant usage, create on schema public to jobbko_owner;
do $$
begin
    grant jobbko_operator to jobbko_admin;
exception when unique_violation or internal_error then
    null;   -- the migration of another database is doing the same just now
end
$$;

-- Without "in schema", or it has no effect: what public may do by default can only be taken back globally.
alter default privileges for role jobbko_owner revoke execute on functions from public;

commit;
