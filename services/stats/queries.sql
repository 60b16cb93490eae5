-- Statements of the stats worker, under its own login.

-- name: sources
select name, folder, base_name, hosts, media_prefix, feed_paths, show, shows_by_folder, media_folder, feed_file,
       time_zone, whole_durations,
       exists (select from stats.file where file.source = source.name and state <> 'gone') as was_read
  from stats.source
 where (enabled or %(all)s) and (%(name)s::text is null or name = %(name)s)
 order by name

-- name: set_up
select stats.set_up(make_interval(mins => %(every_minutes)s))

-- name: next_run
select stats.next_run() as at

-- name: sweep
-- Queues the schedule's first run now, not at some worker's next sweep.
select * from sweep_jobs()

-- name: lock_source
-- The second of two parsers of a source waits here for the first one's commit, and then sees its position.
select name from stats.source where name = %(source)s for update

-- name: positions
select fingerprint, name, byte_offset, size_seen, lines, state from stats.file where source = %(source)s

-- name: add_file
insert into stats.file (source, fingerprint, name) values (%(source)s, %(fingerprint)s, %(name)s)
on conflict (source, fingerprint) do nothing

-- name: advance
-- Names the position that the batch began at: whoever has moved it has counted these lines.
update stats.file
   set byte_offset = %(end)s, name = %(name)s, size_seen = greatest(size_seen, %(size_seen)s), state = %(state)s,
       lines = lines + %(lines)s, bad = bad + %(bad)s, first_day = least(first_day, %(first_day)s::date),
       last_day = greatest(last_day, %(last_day)s::date), changed_at = clock_timestamp()
 where source = %(source)s and fingerprint = %(fingerprint)s and byte_offset = %(start)s
returning byte_offset

-- name: set_state
update stats.file set state = %(state)s, changed_at = clock_timestamp()
 where source = %(source)s and fingerprint = %(fingerprint)s and state <> %(state)s

-- name: open_days
-- In order, so that two batches never wait for each other. A closed day is not among the rows that come back.
insert into stats.day as old (day)
select day from unnest(%(days)s::date[]) as day order by day
on conflict (day) do update set is_dirty = true where old.state = 'open'
returning day, generation

-- name: closed_days
select day from stats.day where state = 'closed'

-- name: add_salts
insert into stats.salt (day, generation, key)
select * from unnest(%(days)s::date[], %(generations)s::integer[], %(keys)s::bytea[])
on conflict (day, generation) do nothing

-- name: salts
select day, generation, key from stats.salt where day = any (%(days)s)

-- name: add_windows
-- Sums, unions and minima alone, so neither the order of batches nor where they are cut matters. What is known of the
-- agent stays as it was first read: a new list holds for listeners that are new.
insert into stats.listener_window as old
       (day, generation, show, episode, total_size, listener, is_allowed, ranges, first_start, requests, bytes, app,
        app_type, device, country, referrer, list_version)
select %(day)s, %(generation)s, episodes.show, episodes.episode, fresh.total_size, fresh.address || agents.hash,
       fresh.address = any (%(allowed)s::bytea[]),
       case when fresh.ranges = '' then int8multirange(int8range(fresh.first, fresh."end"))
            else fresh.ranges::int8multirange end,
       timestamptz 'epoch' + fresh.first_start * interval '1 microsecond',
       fresh.requests, fresh.bytes, agents.app, agents.app_type, agents.device, fresh.country, fresh.referrer,
       %(list_version)s
  from (select columns.*, substring(%(addresses)s::bytea, 8 * number::integer - 7, 8) as address
          from unnest(%(episode_numbers)s::integer[], %(agent_numbers)s::integer[], %(total_sizes)s::bigint[],
                      %(firsts)s::bigint[], %(ends)s::bigint[], %(ranges)s::text[], %(first_starts)s::bigint[],
                      %(requests)s::bigint[], %(bytes)s::bigint[], %(countries)s::text[], %(referrers)s::text[])
               with ordinality
               as columns (episode_number, agent_number, total_size, first, "end", ranges, first_start, requests,
                           bytes, country, referrer, number)) as fresh
  join unnest(%(shows)s::text[], %(episodes)s::text[]) with ordinality as episodes (show, episode, at)
    on episodes.at = fresh.episode_number
  join unnest(%(apps)s::text[], %(app_types)s::text[], %(devices)s::text[], %(agent_hashes)s::bytea[]) with ordinality
       as agents (app, app_type, device, hash, at)
    on agents.at = fresh.agent_number
on conflict (day, generation, show, episode, total_size, listener) do update
   set ranges = old.ranges + excluded.ranges,
       is_allowed = old.is_allowed or excluded.is_allowed,
       referrer = case when (excluded.first_start, excluded.referrer) < (old.first_start, old.referrer)
                       then excluded.referrer else old.referrer end,
       first_start = least(old.first_start, excluded.first_start),
       requests = old.requests + excluded.requests,
       bytes = old.bytes + excluded.bytes

-- name: add_excluded
-- Late lines are of closed days, whose generation nobody knows here.
insert into stats.excluded_day as old (day, generation, reason, requests)
select %(day)s, coalesce(%(generation)s, (select generation from stats.day where day = %(day)s), 0), reason, requests
  from unnest(%(reasons)s::text[], %(requests)s::bigint[]) as fresh (reason, requests)
on conflict (day, generation, reason) do update set requests = old.requests + excluded.requests

-- name: add_feeds
insert into stats.feed_day as old (day, generation, feed, app, requests, reported_subscribers)
select %(day)s, %(generation)s, feed, app, sum(requests), max(subscribers)
  from unnest(%(feeds)s::text[], %(apps)s::text[], %(requests)s::bigint[], %(subscribers)s::bigint[])
       as fresh (feed, app, requests, subscribers)
 group by feed, app
on conflict (day, generation, feed, app) do update
   set requests = old.requests + excluded.requests,
       reported_subscribers = greatest(old.reported_subscribers, excluded.reported_subscribers)

-- name: add_unknown_agents
insert into stats.unknown_agent as old (day, generation, agent, requests)
select %(day)s, %(generation)s, agent, sum(requests)
  from unnest(%(agents)s::text[], %(requests)s::bigint[]) as fresh (agent, requests)
 group by agent
on conflict (day, generation, agent) do update set requests = old.requests + excluded.requests

-- name: add_bad_lines
insert into stats.bad_line (source, fingerprint, byte_offset, reason, sample)
select %(source)s, %(fingerprint)s, byte_offset, reason, sample
  from unnest(%(offsets)s::bigint[], %(reasons)s::text[], %(samples)s::text[]) as fresh (byte_offset, reason, sample)
on conflict (source, fingerprint, byte_offset) do nothing

-- name: forget_bad_lines
delete from stats.bad_line where found_at < clock_timestamp() - interval '14 days'

-- name: dirty_days
select day from stats.day where state = 'open' and is_dirty order by day

-- name: days_to_close
select day from stats.day
 where state = 'open' and (day + 2 + time '03:00') at time zone %(time_zone)s <= clock_timestamp()
 order by day

-- name: derive_day
select stats.derive_day(%(day)s, %(most_episodes)s, %(most_downloads)s, %(exclude_heavy)s)

-- name: close_day
select stats.close_day(%(day)s, %(most_episodes)s, %(most_downloads)s, %(exclude_heavy)s)

-- name: day_figures
select day.day, day.state, day.downloads, day.counted_requests, day.heavy_addresses, day.unknown_lengths,
       (select coalesce(sum(listeners), 0)::bigint from stats.listener_day as other where other.day = day.day)
       as listeners
  from stats.day where day = any (%(days)s) order by day

-- name: versions_without_facts
-- Files that were fetched and of which nothing is known yet.
select distinct w.show, w.episode, w.total_size
  from stats.listener_window as w
 where w.total_size > 0
   and not exists (select from stats.media
                    where media.show = w.show and media.episode = w.episode and media.total_size = w.total_size)

-- name: known_totals
-- Of each episode the version that was last written: for answers that do not say the file's size.
select show, episode, max(total_size) as total_size from stats.media group by show, episode

-- name: published
select show, episode, extract(epoch from published_at)::double precision as published
  from stats.episode where published_at is not null

-- name: put_media
insert into stats.media as old (show, episode, total_size, duration_seconds, id3_bytes, origin)
values (%(show)s, %(episode)s, %(total_size)s, %(duration_seconds)s, %(id3_bytes)s, %(origin)s)
on conflict (show, episode, total_size) do update
   set duration_seconds = excluded.duration_seconds, id3_bytes = excluded.id3_bytes, origin = excluded.origin
 where (old.origin = 'feed' or (old.origin = 'file' and excluded.origin = 'file'))
   and (old.duration_seconds, old.id3_bytes, old.origin)
       is distinct from (excluded.duration_seconds, excluded.id3_bytes, excluded.origin)

-- name: put_episode
insert into stats.episode as old (show, episode, title, published_at, origin)
values (%(show)s, %(episode)s, %(title)s, %(published_at)s, 'feed')
on conflict (show, episode) do update
   set title = excluded.title, published_at = excluded.published_at
 where old.origin = 'feed' and (old.title, old.published_at) is distinct from (excluded.title, excluded.published_at)

-- name: days_between
select day, generation from stats.day where day between %(first)s and %(last)s order by day

-- name: files_between
-- Every file that has requests of these days, also of sources that are gone.
select source, fingerprint, name, byte_offset from stats.file
 where first_day <= %(last)s and last_day >= %(first)s
 order by source, first_day, fingerprint

-- name: lock_sources
-- No batch is committed until this transaction ends.
select name from stats.source order by name for update

-- name: forget_staged
-- What an attempt before has left.
with windows as (
    delete from stats.listener_window as w using stats.day as d
     where w.day = d.day and w.generation > d.generation and d.day between %(first)s and %(last)s
), agents as (
    delete from stats.unknown_agent as w using stats.day as d
     where w.day = d.day and w.generation > d.generation and d.day between %(first)s and %(last)s
), excluded as (
    delete from stats.excluded_day as w using stats.day as d
     where w.day = d.day and w.generation > d.generation and d.day between %(first)s and %(last)s
), feeds as (
    delete from stats.feed_day as w using stats.day as d
     where w.day = d.day and w.generation > d.generation and d.day between %(first)s and %(last)s
)
delete from stats.salt as w using stats.day as d
 where w.day = d.day and w.generation > d.generation and d.day between %(first)s and %(last)s

-- name: replace_day
select stats.replace_day(%(day)s, %(generation)s, %(note)s, %(most_episodes)s, %(most_downloads)s, %(exclude_heavy)s)
