-- Statements of `jobs stats`. They run as jobbko_operator; the reports also as jobbko_reader.

-- name: episodes
select show, episode, title, published_at, first_24_hours, first_7_days, first_30_days, downloads
  from stats.episode_age
 where (%(show)s::text is null or show = %(show)s)
 order by published_at desc nulls last, downloads desc, show, episode

-- name: days
select day.day, day.state, download.show, download.downloads, coalesce(listener_day.listeners, 0) as listeners,
       day.heavy_addresses, day.unknown_lengths
  from stats.day
  join (select day, show, sum(downloads)::bigint as downloads from stats.download_day group by day, show) as download
 using (day)
  left join stats.listener_day using (day, show)
 where day.day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 order by day.day desc, show

-- name: downloads
select day, state, show, episode, downloads, bytes
  from stats.downloads_per_day
 where day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 order by day desc, downloads desc, show, episode

-- name: apps
select show, app_type, app, sum(downloads)::bigint as downloads
  from stats.apps
 where day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 group by show, app_type, app
having sum(downloads) >= %(least)s
 order by downloads desc, show, app_type, app

-- name: devices
select show, device, sum(downloads)::bigint as downloads
  from stats.devices
 where day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 group by show, device
having sum(downloads) >= %(least)s
 order by downloads desc, show, device

-- name: countries
select show, country, sum(downloads)::bigint as downloads
  from stats.countries
 where day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 group by show, country
having sum(downloads) >= %(least)s
 order by downloads desc, show, country

-- name: referrers
select show, host, sum(downloads)::bigint as downloads
  from stats.referrers
 where day between %(first)s and %(last)s and (%(show)s::text is null or show = %(show)s)
 group by show, host
having sum(downloads) >= %(least)s
 order by downloads desc, show, host

-- name: excluded
select reason, sum(requests)::bigint as requests
  from stats.accounts
 where day between %(first)s and %(last)s
 group by reason
 order by requests desc, reason

-- name: feeds
select day, feed, app, requests, reported_subscribers
  from stats.feed_day
  join stats.day using (day, generation)
 where day between %(first)s and %(last)s
 order by day desc, requests desc, feed, app

-- name: unknown
select agent, min(day) as first_day, max(day) as last_day, sum(requests)::bigint as requests
  from stats.unknown_agent
  join stats.day using (day, generation)
 where day between %(first)s and %(last)s
 group by agent
 order by requests desc, agent

-- name: files
select source, name, state, byte_offset, size_seen, lines, bad, first_day, last_day, changed_at
  from stats.file
 order by source, changed_at desc, name

-- name: sources
select name, folder, base_name, hosts, media_prefix, feed_paths, show, shows_by_folder, media_folder, feed_file,
       time_zone, whole_durations, enabled
  from stats.source
 order by name

-- name: set_source
-- What is not given (null) stays as it is; an empty text takes a field away that may be missing.
insert into stats.source as old (name, folder, base_name, hosts, media_prefix, feed_paths, show, shows_by_folder,
                                 media_folder, feed_file, time_zone, whole_durations, enabled)
values (%(name)s, coalesce(%(folder)s, '.'), coalesce(%(base_name)s, 'access.log'),
        coalesce(%(hosts)s::text[], '{}'), coalesce(%(media_prefix)s, '/'), coalesce(%(feed_paths)s::text[], '{}'),
        coalesce(%(show)s, %(name)s), coalesce(%(shows_by_folder)s, false), nullif(%(media_folder)s, ''),
        nullif(%(feed_file)s, ''), coalesce(%(time_zone)s, 'Europe/Oslo'),
        coalesce(%(whole_durations)s, 'ns'), coalesce(%(enabled)s, true))
on conflict (name) do update
   set folder = coalesce(%(folder)s, old.folder),
       base_name = coalesce(%(base_name)s, old.base_name),
       hosts = coalesce(%(hosts)s::text[], old.hosts),
       media_prefix = coalesce(%(media_prefix)s, old.media_prefix),
       feed_paths = coalesce(%(feed_paths)s::text[], old.feed_paths),
       show = coalesce(%(show)s, old.show),
       shows_by_folder = coalesce(%(shows_by_folder)s, old.shows_by_folder),
       media_folder = case when %(media_folder)s::text is null then old.media_folder else excluded.media_folder end,
       feed_file = case when %(feed_file)s::text is null then old.feed_file else excluded.feed_file end,
       time_zone = coalesce(%(time_zone)s, old.time_zone),
       whole_durations = coalesce(%(whole_durations)s, old.whole_durations),
       enabled = coalesce(%(enabled)s, old.enabled)
returning *

-- name: remove_source
delete from stats.source where name = %(name)s returning name

-- name: waiting_run
select id from job_queue
 where job_type = 'stats_parse' and unique_key = 'schedule:podcast statistics' and status in ('pending', 'retry')

-- name: run_now
select retry_job(%(id)s) as outcome

-- name: enqueue_run
select id, outcome from enqueue_job('stats_parse', %(payload)s, 0::smallint, now(), 3::smallint, %(key)s)
