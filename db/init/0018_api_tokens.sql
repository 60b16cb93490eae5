-- Tokens of the JSON API. A token is a random 256-bit secret that is shown once; what is kept is its SHA-256, which no
-- login may read: the API hands in the hash of what was sent to it and gets name and scopes back.

begin;
insert into schema_migrations (version, name) values (18, 'api_tokens');
set local role jobbko_owner;

create table api_token (
    id           bigint      generated always as identity primary key,
    name         text        not null check (name ~ '^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,99}$'),
    fingerprint  bytea       not null unique check (octet_length(fingerprint) = 32),
    scopes       text[]      not null
                             check (cardinality(scopes) > 0 and scopes <@ array['enqueue', 'read', 'operate']),
    created_by   text        not null default event_actor(),
    created_at   timestamptz not null default clock_timestamp(),
    expires_at   timestamptz check (expires_at >= '2000-01-01 00:00+00' and expires_at < '2200-01-01 00:00+00'),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    check ((revoked_at is null) = (revoked_by is null))
);
-- The name stands in job_event as the actor: it must say which token of those that are valid.
create unique index api_token_name on api_token (name) where revoked_at is null;
comment on table  api_token is 'Tokens of the JSON API; rows stay when a token is revoked, since its name stands in job_event';
comment on column api_token.id is 'Identity';
comment on column api_token.name is 'Who uses it; the actor of what it does is "token:" and this';
comment on column api_token.fingerprint is 'SHA-256 of the token';
comment on column api_token.scopes is 'enqueue: add jobs; read: see jobs, events, types and workers; operate: retry, cancel, priorities, pauses';
comment on column api_token.created_by is 'Who made it';
comment on column api_token.created_at is 'When';
comment on column api_token.expires_at is 'Not valid from then on; null = until it is revoked';
comment on column api_token.last_used_at is 'When it was used, to ten minutes';
comment on column api_token.revoked_at is 'Not valid any more';
comment on column api_token.revoked_by is 'Who took it back';

create function add_api_token(
    p_name text, p_fingerprint bytea, p_scopes text[], p_expires_at timestamptz default null
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_id bigint;
begin
    if p_expires_at <= clock_timestamp() then
        raise exception 'the token "%" would have expired at %', p_name, p_expires_at using errcode = 'JQ002';
    end if;
    insert into api_token (name, fingerprint, scopes, expires_at)
    values (p_name, p_fingerprint, p_scopes, p_expires_at)
    returning id into v_id;
    perform record_audit('token.create', null, p_name,
        jsonb_build_object('scopes', p_scopes, 'expires_at', p_expires_at));
    return v_id;
exception when unique_violation then
    raise exception 'there is a token "%" already', p_name
        using errcode = 'JQ002', hint = 'revoke it, or take another name';
end
$$;
comment on function add_api_token is 'Makes a token known by its SHA-256; returns its id';

create function revoke_api_token(p_name text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update api_token set revoked_at = clock_timestamp(), revoked_by = event_actor()
     where name = p_name and revoked_at is null;
    if found then
        perform record_audit('token.revoke', null, p_name);
        return true;
    elsif not exists (select from api_token where name = p_name) then
        raise exception 'there is no token "%"', p_name using errcode = 'JQ004';
    end if;
    return false;
end
$$;
comment on function revoke_api_token is 'Takes a token back, at once; false when it was taken back before';

-- The time of use is written at most every ten minutes: a write for each request would be most of what a request costs.
create function use_api_token(p_fingerprint bytea) returns table (name text, scopes text[])
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_token api_token;
begin
    select * into v_token from api_token
     where fingerprint = p_fingerprint and revoked_at is null
       and (expires_at is null or expires_at > clock_timestamp());
    if not found then
        return;
    end if;
    if v_token.last_used_at is null or v_token.last_used_at < clock_timestamp() - interval '10 minutes' then
        update api_token set last_used_at = clock_timestamp() where id = v_token.id;
    end if;
    return query select v_token.name, v_token.scopes;
end
$$;
comment on function use_api_token is 'Name and scopes of the valid token with this SHA-256; no row when there is none';

-- All or none, with the name of who asks, in one statement: a transaction of four would wait for the network four times.
-- Keys are taken in one order, so that two batches cannot wait for each other.
create function enqueue_as(
    p_actor text, p_job_types text[], p_payloads jsonb[], p_priorities smallint[], p_scheduled_for timestamptz[],
    p_max_attempts smallint[], p_unique_keys text[], p_parent_ids uuid[]
) returns table (id uuid, outcome text)
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform set_config('jobbko.actor', p_actor, true);
    return query
    select made.id, made.outcome
      from (select * from unnest(p_job_types, p_payloads, p_priorities, p_scheduled_for, p_max_attempts, p_unique_keys,
                                 p_parent_ids)
              with ordinality as job (type, payload, priority, scheduled_for, max_attempts, key, parent, position)
             order by type, key, position) as job,
           lateral enqueue_job(job.type, job.payload, job.priority, job.scheduled_for, job.max_attempts, job.key,
                               job.parent) as made
     order by job.position;
end
$$;
comment on function enqueue_as is 'Enqueues jobs in the name of a token; ids and outcomes, as of enqueue_job, in the order given';

grant execute on function add_api_token, revoke_api_token to jobbko_operator;
grant execute on function use_api_token, enqueue_as to jobbko_admin;
grant select (id, name, scopes, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by)
    on api_token to jobbko_operator;

commit;
