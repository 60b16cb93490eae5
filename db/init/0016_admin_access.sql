-- Who may use the admin view, and what they did there: accounts, sessions and the audit trail.

begin;
insert into schema_migrations (version, name) values (16, 'admin_access');
set local role jobbko_owner;

create table admin_account (
    name          text        primary key check (name ~ '^[^[:space:][:cntrl:]/:]{1,100}$'),
    role          text        not null check (role in ('viewer', 'operator')),
    password_hash text        check (password_hash ~ '^scrypt\$[0-9$]+\$[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+$'),
    disabled      boolean     not null default false,
    created_at    timestamptz not null default clock_timestamp(),
    changed_at    timestamptz not null default clock_timestamp()
);
comment on table  admin_account is 'People who may use the admin view';
comment on column admin_account.name is 'What they log in as, and what stands in the audit trail';
comment on column admin_account.role is 'viewer: sees everything; operator: acts, too';
comment on column admin_account.password_hash is 'scrypt, with its cost and salt; null = a trusted proxy alone logs this person in';
comment on column admin_account.disabled is 'May not log in; sessions have ended';
comment on column admin_account.created_at is 'When it was made';
comment on column admin_account.changed_at is 'When role, password or disabled last changed';

create table admin_session (
    token_hash bytea       primary key check (length(token_hash) = 32),
    account    text        not null references admin_account (name) on delete cascade,
    created_at timestamptz not null default clock_timestamp(),
    seen_at    timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null
);
create index admin_session_account on admin_session (account);
comment on table  admin_session is 'Browsers that are logged in';
comment on column admin_session.token_hash is 'SHA-256 of the token in the cookie, so that a copy of this table lets nobody in';
comment on column admin_session.account is 'Who';
comment on column admin_session.created_at is 'When they logged in';
comment on column admin_session.seen_at is 'Their last request, to within a minute';
comment on column admin_session.expires_at is 'When it ends, used or not';

create table audit_entry (
    id      bigint      generated always as identity primary key,
    at      timestamptz not null default clock_timestamp(),
    actor   text        not null,
    action  text        not null check (length(action) between 1 and 100),
    job_id  uuid,
    subject text,
    detail  jsonb       not null default '{}'
);
create index audit_entry_job on audit_entry (job_id, id) where job_id is not null;
comment on table  audit_entry is 'What people did, by the admin view, its API or the command line. Changes of a job''s status stand in job_event, too';
comment on column audit_entry.id is 'Order of recording';
comment on column audit_entry.at is 'When';
comment on column audit_entry.actor is 'Who: the person, where the operator''s program named one, else the login role';
comment on column audit_entry.action is 'What, as a word: job.cancel, job_type.pause, account.change';
comment on column audit_entry.job_id is 'The job it was done to';
comment on column audit_entry.subject is 'What else it was done to: a job type, an account, a filter';
comment on column audit_entry.detail is 'How: reason, number of jobs, values before and after; never a secret';

-- Called by the functions of 0008 and by the programs of the operator, inside the transaction of what it records.
-- A worker that pauses its type is no person: its pause stands in job_type with its origin and reason.
create function record_audit(
    p_action text, p_job_id uuid default null, p_subject text default null, p_detail jsonb default '{}'
) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    insert into audit_entry (actor, action, job_id, subject, detail)
    select left(event_actor(), 200), p_action, p_job_id, left(p_subject, 500), jsonb_strip_nulls(coalesce(p_detail, '{}'))
     where not called_by_worker()
$$;
comment on function record_audit is 'Writes down what a person did; nothing for a worker''s login';

-- ---------------------------------------------------------------- accounts

create function put_account(
    p_name text, p_role text default null, p_password_hash text default null, p_disabled boolean default null
) returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_before admin_account;
begin
    select * into v_before from admin_account where name = p_name for update;
    if not found and p_role is null then
        raise exception 'there is no account "%"', p_name using errcode = 'JQ004', hint = 'give a role to make it';
    end if;
    insert into admin_account (name, role, password_hash, disabled)
    values (p_name, coalesce(p_role, v_before.role), p_password_hash, coalesce(p_disabled, false))
    on conflict (name) do update
       set role = coalesce(p_role, admin_account.role),
           password_hash = coalesce(p_password_hash, admin_account.password_hash),
           disabled = coalesce(p_disabled, admin_account.disabled), changed_at = clock_timestamp();
    -- Who knew the old password, or was more than they are now, has to log in again.
    delete from admin_session where account = p_name;
    perform record_audit(case when v_before.name is null then 'account.create' else 'account.change' end, null, p_name,
        jsonb_build_object('role', coalesce(p_role, v_before.role), 'password', p_password_hash is not null,
                           'disabled', p_disabled));
    return case when v_before.name is null then 'created' else 'changed' end;
end
$$;
comment on function put_account is 'Makes an account or changes what is given of it, and ends its sessions: created, changed';

create function drop_account(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from admin_account where name = p_name;
    if not found then
        raise exception 'there is no account "%"', p_name using errcode = 'JQ004';
    end if;
    perform record_audit('account.delete', null, p_name);
end
$$;

create function list_accounts()
returns table (name text, role text, has_password boolean, disabled boolean, created_at timestamptz,
               changed_at timestamptz, sessions bigint, seen_at timestamptz)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select account.name, account.role, account.password_hash is not null, account.disabled, account.created_at,
           account.changed_at, count(session.account), max(session.seen_at)
      from admin_account as account
      left join admin_session as session on session.account = account.name and session.expires_at > clock_timestamp()
     group by account.name
     order by account.name
$$;

-- ---------------------------------------------------------------- sessions, for the admin view alone

-- The row of a name that may log in; the password is compared by the program, since the server has no scrypt.
create function find_account(p_name text) returns table (name text, role text, password_hash text)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select account.name, account.role, account.password_hash from admin_account as account
     where account.name = p_name and not account.disabled
$$;

create function has_accounts() returns boolean
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from admin_account where password_hash is not null and not disabled)
$$;

-- Also the place where ended sessions are forgotten.
create function open_session(p_account text, p_token_hash bytea, p_lifetime interval, p_idle interval) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from admin_session
     where expires_at <= clock_timestamp() or seen_at <= clock_timestamp() - p_idle;
    insert into admin_session (token_hash, account, expires_at)
    select p_token_hash, name, clock_timestamp() + p_lifetime
      from admin_account where name = p_account and not disabled;
    if not found then
        raise exception 'there is no account "%" that may log in', p_account using errcode = 'JQ004';
    end if;
end
$$;

-- Written at most once a minute: a page view is a read. p_touch: a person asked, not a page by itself.
create function use_session(p_token_hash bytea, p_idle interval, p_touch boolean) returns table (name text, role text)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    update admin_session set seen_at = clock_timestamp()
     where p_touch and token_hash = p_token_hash and expires_at > clock_timestamp()
       and seen_at > clock_timestamp() - p_idle and seen_at < clock_timestamp() - least(interval '1 minute', p_idle / 4);
    return query
    select account.name, account.role
      from admin_session as session join admin_account as account on account.name = session.account
     where session.token_hash = p_token_hash and session.expires_at > clock_timestamp()
       and session.seen_at > clock_timestamp() - p_idle and not account.disabled;
end
$$;

create function close_session(p_token_hash bytea) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    delete from admin_session where token_hash = p_token_hash
$$;

grant select on audit_entry to jobbko_operator, jobbko_reader;
grant execute on function put_account, drop_account, list_accounts, record_audit to jobbko_operator;
grant execute on function find_account, has_accounts, open_session, use_session, close_session to jobbko_admin;

commit;
