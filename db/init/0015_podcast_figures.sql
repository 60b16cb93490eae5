-- From listeners' windows to figures, and the figures for people: functions of the worker, views of everybody who reads.

begin;
insert into schema_migrations (version, name) values (15, 'podcast_figures');
set local role jobbko_owner;

-- A day's downloads, one a listener and episode whatever versions of the file it fetched (R20, R24).
create view stats.counted_listener as
select distinct on (day, show, episode, listener)
       day, show, episode, listener, case when not is_allowed then substring(listener from 1 for 8) end as address,
       first_start, app, app_type, device, country, referrer, list_version,
       sum(bytes) over (partition by day, show, episode, listener) as bytes
  from stats.listener_window
  join stats.day using (day, generation)
 where counted
 order by day, show, episode, listener, first_start, total_size;

-- R14: a window counts when the union of its ranges has the threshold of its file. A window of a file whose size nobody
-- knows does not. Only what changes is written.
create function stats.mark_counted(p_day date) returns void
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    update stats.listener_window as seen
       set counted = judged.counted
      from (select w.show, w.episode, w.total_size, w.listener,
                   w.total_size > 0
                   and (select coalesce(sum(upper(r) - lower(r)), 0) from unnest(w.ranges) as r)
                       >= coalesce(media.threshold, w.total_size) as counted
              from stats.listener_window as w
              join stats.day using (day, generation)
              left join stats.media
                     on media.show = w.show and media.episode = w.episode and media.total_size = w.total_size
             where w.day = p_day) as judged
     where seen.day = p_day and seen.generation = (select generation from stats.day where day = p_day)
       and seen.show = judged.show and seen.episode = judged.episode
       and seen.total_size = judged.total_size and seen.listener = judged.listener
       and seen.counted is distinct from judged.counted
$$;

-- R31: addresses that are no single person, by their hashes.
create function stats.heavy_addresses(p_day date, p_most_episodes integer, p_most_downloads integer)
returns setof bytea
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select address from stats.counted_listener
     where day = p_day and address is not null
     group by address
    having count(distinct (show, episode)) > p_most_episodes or count(*) > p_most_downloads
$$;

-- All figures of an open day anew. The day's row is locked: who writes windows of that day waits, or is waited for.
create function stats.derive_day(
    p_day date, p_most_episodes integer default 100, p_most_downloads integer default 500,
    p_exclude_heavy boolean default false
) returns void
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_heavy bytea[];
begin
    perform from stats.day where day = p_day and state = 'open' for update;
    if not found then
        raise exception 'day % is not open', p_day using errcode = 'JQ002';
    end if;
    perform stats.mark_counted(p_day);
    v_heavy := array(select stats.heavy_addresses(p_day, p_most_episodes, p_most_downloads));
    perform stats.replace_figures(p_day, case when p_exclude_heavy then v_heavy else '{}' end);
    update stats.day
       set is_dirty = false, heavy_addresses = cardinality(v_heavy),
           counted_requests = coalesce((select sum(w.requests) from stats.listener_window as w
                                       where w.day = p_day and w.generation = day.generation), 0)
               - coalesce((select e.requests from stats.excluded_day as e
                            where e.day = p_day and e.generation = day.generation and e.reason = 'volume'), 0),
           downloads = coalesce((select sum(downloads) from stats.download_day where day = p_day), 0),
           unknown_lengths = (select count(distinct (w.show, w.episode, w.total_size))
                                from stats.listener_window as w
                                left join stats.media
                                       on media.show = w.show and media.episode = w.episode
                                      and media.total_size = w.total_size
                               where w.day = p_day and w.generation = day.generation
                                 and (media.duration_seconds is null or media.id3_bytes is null))
     where day = p_day;
end
$$;
comment on function stats.derive_day is 'Derives all figures of an open day from its windows';

-- p_left_out: addresses whose downloads and requests do not count.
create function stats.replace_figures(p_day date, p_left_out bytea[]) returns void
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from stats.download_day where day = p_day;
    delete from stats.download_hour where day = p_day;
    delete from stats.referrer_day where day = p_day;
    delete from stats.listener_day where day = p_day;
    delete from stats.excluded_day where day = p_day and reason = 'volume';

    with counted as materialized (  -- once for all: it sorts the day
        select * from stats.counted_listener
         where day = p_day and (address is null or address <> all (p_left_out))
    ), downloads as (
        insert into stats.download_day
               (day, show, episode, app, app_type, device, country, list_version, downloads, bytes)
        select day, show, episode, app, app_type, device, country, list_version, count(*), sum(bytes)
          from counted
         group by day, show, episode, app, app_type, device, country, list_version
    ), hours as (
        insert into stats.download_hour (hour, day, show, episode, downloads)
        select date_trunc('hour', first_start, 'UTC') as hour, day, show, episode, count(*)
          from counted
         group by hour, day, show, episode
    ), referrers as (
        insert into stats.referrer_day (day, show, episode, host, downloads)
        select day, show, episode, referrer, count(*)
          from counted
         where referrer <> ''
         group by day, show, episode, referrer
    )
    insert into stats.listener_day (day, show, listeners)  -- R28
    select day, show, count(distinct listener)
      from counted
     group by day, show;

    insert into stats.excluded_day (day, generation, reason, requests)
    select p_day, min(generation), 'volume', sum(requests)
      from stats.listener_window
      join stats.day using (day, generation)
     where day = p_day and not is_allowed and substring(listener from 1 for 8) = any (p_left_out)
    having count(*) > 0;
end
$$;

-- The last figures of a day; afterwards nobody can tell its listeners apart any more.
create function stats.close_day(
    p_day date, p_most_episodes integer default 100, p_most_downloads integer default 500,
    p_exclude_heavy boolean default false
) returns void
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform stats.derive_day(p_day, p_most_episodes, p_most_downloads, p_exclude_heavy);
    delete from stats.listener_window where day = p_day;
    delete from stats.unknown_agent where day = p_day;
    delete from stats.salt where day = p_day;
    update stats.day set state = 'closed', closed_at = clock_timestamp() where day = p_day and state = 'open';
end
$$;
comment on function stats.close_day is 'Derives an open day a last time and deletes what it was derived from';

-- What is learned of a file changes which of its windows count, on days that still have any.
create function stats.mark_days_of_media() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update stats.day set is_dirty = true
     where state = 'open' and not is_dirty
       and exists (select from stats.listener_window as w
                    where w.day = day.day and w.show = coalesce(new.show, old.show)
                      and w.episode = coalesce(new.episode, old.episode)
                      and w.total_size in (new.total_size, old.total_size));
    return null;
end
$$;
create trigger mark_days_of_media after insert or update or delete on stats.media
    for each row execute function stats.mark_days_of_media();

-- A day that was counted again takes the place of what there was; a closed one is closed again.
create function stats.replace_day(
    p_day date, p_generation integer, p_note text, p_most_episodes integer, p_most_downloads integer,
    p_exclude_heavy boolean
) returns void
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_state text;
begin
    select state into strict v_state from stats.day where day = p_day for update;
    delete from stats.listener_window where day = p_day and generation <> p_generation;
    delete from stats.unknown_agent where day = p_day and generation <> p_generation;
    delete from stats.excluded_day where day = p_day and generation <> p_generation;
    delete from stats.feed_day where day = p_day and generation <> p_generation;
    delete from stats.salt where day = p_day and generation <> p_generation;
    update stats.day set generation = p_generation, state = 'open', note = p_note where day = p_day;
    if v_state = 'closed' then
        perform stats.close_day(p_day, p_most_episodes, p_most_downloads, p_exclude_heavy);
    else
        perform stats.derive_day(p_day, p_most_episodes, p_most_downloads, p_exclude_heavy);
    end if;
end
$$;
comment on function stats.replace_day is 'Puts the rows of a new generation in the place of a day''s old ones';

create function stats.called_by_stats() returns boolean
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from job_type where name = 'stats_parse' and role = session_user)
$$;

-- What the worker needs to be there when it starts: a source, and the schedule that keeps one run queued. What an
-- operator has changed or switched off stays as it is.
create function stats.set_up(p_every interval) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if not stats.called_by_stats() then
        raise exception 'role % does not work stats_parse', session_user using errcode = '42501';
    end if;
    insert into stats.source (name, show)
    select 'media', 'media' where not exists (select from stats.source)
    on conflict (name) do nothing;
    insert into job_schedule (name, job_type, payload, every)
    values ('podcast statistics', 'stats_parse', '{}', p_every)
    on conflict (name) do nothing;
end
$$;
comment on function stats.set_up is 'Makes the first source and the schedule where they are missing';

-- For a run's result: when the next one is due by the schedules; null where they are switched off.
create function stats.next_run() returns timestamptz
language sql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select min(next_slot(every, anchor, time_zone, clock_timestamp())) from job_schedule
     where job_type = 'stats_parse' and enabled
$$;
comment on function stats.next_run is 'When the next run of stats_parse is due by its schedules';

-- ---------------------------------------------------------------- reports

create view stats.downloads_per_day as
select day.day, day.state, download.show, download.episode, sum(download.downloads)::bigint as downloads,
       sum(download.bytes)::bigint as bytes
  from stats.day join stats.download_day as download using (day)
 group by day.day, day.state, download.show, download.episode;
comment on view stats.downloads_per_day is 'Downloads of each episode and day';

-- By the hour in which a listener began, so the first day of an episode is its first 24 hours, whatever the clock said.
create view stats.episode_age as
select hourly.show, hourly.episode, episode.title, episode.published_at,
       sum(downloads) filter (where hour < since + interval '1 day')::bigint as first_24_hours,
       sum(downloads) filter (where hour < since + interval '7 days')::bigint as first_7_days,
       sum(downloads) filter (where hour < since + interval '30 days')::bigint as first_30_days,
       sum(downloads)::bigint as downloads
  from stats.download_hour as hourly
  left join stats.episode using (show, episode)
 cross join lateral (select date_trunc('hour', coalesce(episode.published_at,
                                                        (select min(first.hour) from stats.download_hour as first
                                                          where first.show = hourly.show
                                                            and first.episode = hourly.episode)), 'UTC')) as begun (since)
 group by hourly.show, hourly.episode, episode.title, episode.published_at;
comment on view stats.episode_age is 'Downloads in the first day, week and 30 days since publication, or since the first download';

create view stats.apps as
select day, show, app_type, app, sum(downloads)::bigint as downloads from stats.download_day
 group by day, show, app_type, app;
create view stats.devices as
select day, show, device, sum(downloads)::bigint as downloads from stats.download_day group by day, show, device;
create view stats.countries as
select day, show, country, sum(downloads)::bigint as downloads from stats.download_day group by day, show, country;
create view stats.referrers as
select day, show, host, sum(downloads)::bigint as downloads from stats.referrer_day group by day, show, host;
comment on view stats.apps is 'Downloads by app';
comment on view stats.devices is 'Downloads by kind of device';
comment on view stats.countries is 'Downloads by country';
comment on view stats.referrers is 'Downloads by referring site';

-- All lines of a day: what counted, and what did not and why.
create view stats.accounts as
select day, 'counted' as reason, counted_requests as requests from stats.day
 union all
select excluded.day, excluded.reason, excluded.requests
  from stats.excluded_day as excluded
  left join stats.day using (day)
 where excluded.generation = coalesce(day.generation, 0);
comment on view stats.accounts is 'All lines of each day by what became of them';

grant execute on function stats.mark_counted, stats.heavy_addresses, stats.derive_day, stats.replace_figures,
    stats.close_day, stats.replace_day, stats.set_up, stats.called_by_stats, stats.next_run to worker_stats;
grant select on stats.counted_listener to worker_stats;
grant select on stats.downloads_per_day, stats.episode_age, stats.apps, stats.devices, stats.countries, stats.referrers,
    stats.accounts to worker_stats, jobbko_operator, jobbko_reader;

commit;
