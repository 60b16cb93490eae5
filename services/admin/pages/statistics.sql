-- Statements of the page on downloads, from the views of the statistics (db/init/0015).

-- name: shows_list
select distinct show from stats.listener_day order by show limit 100

-- name: downloads_days
select day.day, coalesce(sum(download.downloads), 0)::bigint as downloads, bool_or(day.state = 'open') as is_open
  from stats.day
  left join stats.download_day as download on download.day = day.day and (%(show)s::text is null or download.show = %(show)s)
 where day.day > %(today)s::date - %(days)s::integer
 group by day.day
 order by day.day

-- name: episodes_list
select show, episode, title, published_at, first_24_hours, first_7_days, first_30_days, downloads
  from stats.episode_age
 where (%(show)s::text is null or show = %(show)s)
 order by published_at desc nulls last, downloads desc, show, episode
 limit 100

-- name: apps_list
select app as name, sum(downloads)::bigint as downloads
  from stats.apps
 where day > %(today)s::date - %(days)s::integer and (%(show)s::text is null or show = %(show)s)
 group by app order by downloads desc, app limit 15

-- name: countries_list
select country as name, sum(downloads)::bigint as downloads
  from stats.countries
 where day > %(today)s::date - %(days)s::integer and (%(show)s::text is null or show = %(show)s)
 group by country order by downloads desc, country limit 15

-- name: devices_list
select device as name, sum(downloads)::bigint as downloads
  from stats.devices
 where day > %(today)s::date - %(days)s::integer and (%(show)s::text is null or show = %(show)s)
 group by device order by downloads desc, device limit 15

-- name: referrers_list
select host as name, sum(downloads)::bigint as downloads
  from stats.referrers
 where day > %(today)s::date - %(days)s::integer and (%(show)s::text is null or show = %(show)s)
 group by host order by downloads desc, host limit 15
