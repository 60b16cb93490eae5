-- Alerts that Prometheus raises, and whom they were told to. services/admin/alerts receives and tells them.

begin;
insert into schema_migrations (version, name) values (24, 'alerts');
set local role jobbko_owner;

create table alert (
    fingerprint text        primary key,
    name        text        not null,
    severity    text        not null,
    labels      jsonb       not null,
    summary     text        not null,
    next_step   text        not null,
    starts_at   timestamptz not null,
    ends_at     timestamptz not null,
    received_at timestamptz not null default clock_timestamp()
);
comment on table  alert is 'Alerts, as Prometheus last told them; one row for each set of labels';
comment on column alert.fingerprint is 'SHA-256 of the labels: one alert, however often it fires';
comment on column alert.name is 'Name of the rule';
comment on column alert.severity is 'warning or critical';
comment on column alert.labels is 'What it is about';
comment on column alert.summary is 'What is wrong';
comment on column alert.next_step is 'What to do';
comment on column alert.starts_at is 'Since when it fires';
comment on column alert.ends_at is 'When it ended; while it fires, when it is taken to have ended if nothing more is heard';
comment on column alert.received_at is 'When Prometheus last told it';

create table alert_notice (
    fingerprint text        not null references alert (fingerprint) on delete cascade,
    channel     text        not null check (channel in ('webhook', 'mail')),
    starts_at   timestamptz not null,
    told_at     timestamptz,
    is_over     boolean     not null default false,
    tries       integer     not null default 0,
    next_at     timestamptz not null default clock_timestamp(),
    last_error  text,
    primary key (fingerprint, channel)
);
comment on table  alert_notice is 'Whom an alert was told to, and what is still to be told';
comment on column alert_notice.fingerprint is 'The alert';
comment on column alert_notice.channel is 'webhook or mail';
comment on column alert_notice.starts_at is 'The firing that this is about: a later one is told anew';
comment on column alert_notice.told_at is 'When it was last told that it fires';
comment on column alert_notice.is_over is 'Its end was told, too';
comment on column alert_notice.tries is 'Tries since the last success';
comment on column alert_notice.next_at is 'Not tried before';
comment on column alert_notice.last_error is 'What came of the last try';

-- [{fingerprint, name, severity, labels, summary, next_step, starts_at, ends_at}]. Told again, an alert keeps when it
-- began; one that had ended and fires again begins anew.
create function record_alerts(p_alerts jsonb) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    delete from alert where ends_at < now() - interval '90 days';
    insert into alert (fingerprint, name, severity, labels, summary, next_step, starts_at, ends_at)
    select distinct on (fingerprint) fingerprint, name, severity, labels, summary, next_step,
           least(greatest(starts_at, '2000-01-01'), '2199-01-01'), least(greatest(ends_at, '2000-01-01'), '2199-01-01')
      from jsonb_to_recordset(p_alerts) as told (fingerprint text, name text, severity text, labels jsonb,
           summary text, next_step text, starts_at timestamptz, ends_at timestamptz)
     order by fingerprint, ends_at desc
    on conflict (fingerprint) do update
       set name = excluded.name, severity = excluded.severity, summary = excluded.summary,
           next_step = excluded.next_step, ends_at = excluded.ends_at, received_at = clock_timestamp(),
           starts_at = case when alert.ends_at <= now() and excluded.ends_at > now() then excluded.starts_at
                            else alert.starts_at end;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
comment on function record_alerts is 'Keeps what Prometheus told; returns how many alerts';

-- What a channel has to be told now: a firing that it does not know or was told long ago, or the end of one it knows.
-- Taken for two minutes, so that two forwarders do not tell the same; what is not settled by then is told again.
create function due_alerts(p_channel text, p_repeat_seconds double precision, p_limit integer default 50)
returns table (
    fingerprint text, name text, severity text, labels jsonb, summary text, next_step text, starts_at timestamptz,
    ends_at timestamptz, is_firing boolean, tries integer
)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    insert into alert_notice (fingerprint, channel, starts_at)
    select alert.fingerprint, p_channel, alert.starts_at from alert where alert.ends_at > now()
    on conflict (fingerprint, channel) do update
       set starts_at = excluded.starts_at, told_at = null, is_over = false, tries = 0, next_at = clock_timestamp()
     where alert_notice.starts_at <> excluded.starts_at;
    return query
    with due as (
        select notice.fingerprint
          from alert_notice as notice join alert on alert.fingerprint = notice.fingerprint
         where notice.channel = p_channel and notice.next_at <= clock_timestamp() and not notice.is_over
           and (alert.ends_at <= now() or notice.told_at is null
                or notice.told_at < now() - make_interval(secs => p_repeat_seconds))
         order by alert.severity, alert.starts_at, alert.fingerprint limit p_limit
           for update of notice skip locked
    )
    update alert_notice as taken set next_at = clock_timestamp() + interval '2 minutes'
      from due join alert on alert.fingerprint = due.fingerprint
     where taken.fingerprint = due.fingerprint and taken.channel = p_channel
    returning alert.fingerprint, alert.name, alert.severity, alert.labels, alert.summary, alert.next_step,
              alert.starts_at, alert.ends_at, alert.ends_at > now(), taken.tries;
end
$$;
comment on function due_alerts is 'Takes the alerts that a channel is to be told now';

-- p_error null = told. A firing that ended before it could be told is over with that one message.
create function settle_alerts(
    p_channel text, p_fingerprints text[], p_were_firing boolean[], p_error text, p_wait_seconds double precision
) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    update alert_notice as notice
       set told_at = case when p_error is null and done.was_firing then clock_timestamp() else notice.told_at end,
           is_over = p_error is null and not done.was_firing,
           tries = case when p_error is null then 0 else least(notice.tries + 1, 1000000) end,
           next_at = clock_timestamp() + make_interval(secs => coalesce(p_wait_seconds, 0)),
           last_error = left(p_error, 2000)
      from unnest(p_fingerprints, p_were_firing) as done (fingerprint, was_firing)
     where notice.fingerprint = done.fingerprint and notice.channel = p_channel
$$;
comment on function settle_alerts is 'Records that a channel was told, or why not';

create function alert_gauges() returns table (firing bigint, untold bigint)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select (select count(*) from alert where ends_at > now()),
           (select count(*) from alert_notice as notice join alert using (fingerprint)
             where notice.tries > 0 and not notice.is_over)
$$;
comment on function alert_gauges is 'Alerts that fire now, and notices whose last try failed';

grant execute on function record_alerts, due_alerts, settle_alerts, alert_gauges to jobbko_delivery;
grant execute on function alert_gauges to jobbko_operator, jobbko_metrics;
grant select on alert, alert_notice to jobbko_operator, jobbko_reader;

commit;
