-- Podcast statistics: from the lines of Caddy's access logs to downloads. Modelled on the IAB Tech Lab's guidelines 2.3
-- with calendar days; not certified. R15 and R16 are kept here, R14, R20, R24, R28 and R31 in the next file, the other
-- rules in services/stats.
--
-- What a listener got of an episode on a day is a row of listener_window, until the day is closed. All figures are
-- derived from these rows, by deleting and inserting a whole day's, so that a repetition cannot add twice. Closing deletes
-- the rows and the day's key: what stays is counts.

begin;
insert into schema_migrations (version, name) values (14, 'podcast_statistics');
create schema stats authorization jobbko_owner;
do $$
begin
    create role worker_stats login;
exception when duplicate_object or unique_violation then
    null;
end
$$;
set local role jobbko_owner;

create table stats.source (
    name            text    primary key check (name ~ '^[A-Za-z0-9_.-]{1,100}$'),
    folder          text    not null default '.' check (length(folder) <= 1000 and folder !~ '^/|(^|/)\.\.(/|$)'),
    base_name       text    not null default 'access.log' check (base_name ~ '^[^/]{1,200}$' and base_name <> '..'),
    hosts           text[]  not null default '{}' check (cardinality(hosts) <= 100),
    media_prefix    text    not null default '/' check (media_prefix ~ '^/' and length(media_prefix) <= 1000),
    feed_paths      text[]  not null default '{}' check (cardinality(feed_paths) <= 100),
    show            text    not null check (length(show) between 1 and 200),
    shows_by_folder boolean not null default false,
    media_folder    text    check (length(media_folder) <= 1000 and media_folder !~ '^/|(^|/)\.\.(/|$)'),
    feed_file       text    check (length(feed_file) <= 1000 and feed_file !~ '^/|(^|/)\.\.(/|$)'),
    time_zone       text    not null default 'Europe/Oslo'   -- the check raises for a name that is no zone
                            check ((timestamp '2024-01-01 00:00' at time zone time_zone) is not null),
    whole_durations text    not null default 'ns' check (whole_durations in ('ns', 'ms')),
    enabled         boolean not null default true
);
comment on table  stats.source is 'Access logs that are counted: one row for each log file that Caddy writes and rolls';
comment on column stats.source.name is 'What jobs call it';
comment on column stats.source.folder is 'Of the log, below STATS_LOG_ROOT';
comment on column stats.source.base_name is 'Name of the log while Caddy writes it';
comment on column stats.source.hosts is 'Sites whose requests count, without ports; none = all';
comment on column stats.source.media_prefix is 'Path on the site below which the episodes lie';
comment on column stats.source.feed_paths is 'Paths of feeds, whose fetches are counted apart';
comment on column stats.source.show is 'Show of the episodes';
comment on column stats.source.shows_by_folder is 'The first folder below media_prefix names the show, where there is one';
comment on column stats.source.media_folder is 'Below MEDIA_ROOT: the files that media_prefix leads to, for their length and tag';
comment on column stats.source.feed_file is 'Below MEDIA_ROOT: a copy of the feed, for lengths and times of publication';
comment on column stats.source.time_zone is 'Whose calendar days are counted';
comment on column stats.source.whole_durations is 'Unit of durations without a fraction: Caddy writes both formats alike';
comment on column stats.source.enabled is 'Whether it is read';

create table stats.file (
    source      text        not null,
    fingerprint bytea       not null check (length(fingerprint) = 32),
    name        text        not null,
    byte_offset bigint      not null default 0 check (byte_offset >= 0),
    size_seen   bigint      not null default 0,
    lines       bigint      not null default 0,
    bad         bigint      not null default 0,
    first_day   date,
    last_day    date,
    state       text        not null default 'live' check (state in ('live', 'rolled', 'unfinished', 'done', 'gone', 'truncated')),
    changed_at  timestamptz not null default clock_timestamp(),
    primary key (source, fingerprint)
);
comment on table  stats.file is 'How far each log file is counted. Its identity outlives renaming and compression';
comment on column stats.file.source is 'The source';
comment on column stats.file.fingerprint is 'SHA-256 of the first line, uncompressed';
comment on column stats.file.name is 'Where it was last seen';
comment on column stats.file.byte_offset is 'Everything before is counted; uncompressed';
comment on column stats.file.size_seen is 'Largest size seen, uncompressed';
comment on column stats.file.lines is 'Lines read';
comment on column stats.file.bad is 'Lines that could not be read';
comment on column stats.file.first_day is 'Earliest day that it has requests of';
comment on column stats.file.last_day is 'Latest day that it has requests of';
comment on column stats.file.state is 'live: being written; rolled: not read to its end; unfinished: its compressed end is missing; done; gone: vanished; truncated: shorter than what was read';
comment on column stats.file.changed_at is 'When this was last written';

create table stats.episode (
    show         text        not null check (length(show) between 1 and 200),
    episode      text        not null check (length(episode) between 1 and 1024),
    title        text        check (length(title) <= 1000),
    published_at timestamptz,
    origin       text        not null default 'manual' check (origin in ('manual', 'feed')),
    primary key (show, episode)
);
comment on table  stats.episode is 'What is known of episodes; rows of origin manual are never overwritten';
comment on column stats.episode.show is 'The show';
comment on column stats.episode.episode is 'Path of the file below the source''s media_prefix';
comment on column stats.episode.title is 'Title, for reports';
comment on column stats.episode.published_at is 'Requests before do not count';
comment on column stats.episode.origin is 'Who wrote the row: a person or program, or the feed';

-- R15: the tag and a minute of audio. R16: shorter than a minute, or of unknown length, is every byte.
create table stats.media (
    show             text             not null check (length(show) between 1 and 200),
    episode          text             not null check (length(episode) between 1 and 1024),
    total_size       bigint           not null check (total_size > 0),
    duration_seconds double precision check (duration_seconds > 0 and duration_seconds < 1e7),
    id3_bytes        bigint           check (id3_bytes >= 0),
    origin           text             not null default 'manual' check (origin in ('manual', 'file', 'feed')),
    threshold        bigint           not null generated always as (
        case when duration_seconds >= 60 and id3_bytes < total_size
             then least(total_size, id3_bytes + ceil(60 * (total_size - id3_bytes) / duration_seconds)::bigint)
             else total_size end) stored,
    primary key (show, episode, total_size)
);
comment on table  stats.media is 'Versions of the episodes'' files; rows of origin manual are never overwritten';
comment on column stats.media.show is 'The show';
comment on column stats.media.episode is 'The episode';
comment on column stats.media.total_size is 'Size of the file in bytes, which tells its versions apart';
comment on column stats.media.duration_seconds is 'Length of the audio; null = unknown';
comment on column stats.media.id3_bytes is 'Size of the tag before the audio; null = unknown';
comment on column stats.media.origin is 'Who wrote the row: a person or program, the file itself, or the feed';
comment on column stats.media.threshold is 'Bytes that a download must have';

create table stats.day (
    day              date        primary key,
    state            text        not null default 'open' check (state in ('open', 'closed')),
    generation       integer     not null default 0,
    is_dirty         boolean     not null default true,
    method           text        not null default 'iab23-cal-oslo-1',
    counted_requests bigint      not null default 0,
    downloads        bigint      not null default 0,
    heavy_addresses  integer     not null default 0,
    unknown_lengths  integer     not null default 0,
    note             text,
    opened_at        timestamptz not null default clock_timestamp(),
    closed_at        timestamptz
);
comment on table  stats.day is 'Calendar days that have requests';
comment on column stats.day.day is 'The day, by the source''s time zone';
comment on column stats.day.state is 'open: requests may still come; closed: counts alone are left';
comment on column stats.day.generation is 'Which rows of the tables below count: a day that is counted again has new ones, until they replace the old';
comment on column stats.day.is_dirty is 'Its figures are older than its windows';
comment on column stats.day.method is 'How downloads were counted';
comment on column stats.day.counted_requests is 'Requests that counted towards downloads';
comment on column stats.day.downloads is 'Downloads of all shows';
comment on column stats.day.heavy_addresses is 'Addresses with more episodes or downloads than a person has (R31)';
comment on column stats.day.unknown_lengths is 'Files of unknown length, of which only whole fetches count (R16)';
comment on column stats.day.note is 'Why it was counted again';
comment on column stats.day.opened_at is 'When its first request was counted';
comment on column stats.day.closed_at is 'When it was closed';

create table stats.salt (
    day        date    not null,
    generation integer not null default 0,
    key        bytea   not null check (length(key) = 32),
    primary key (day, generation)
);
comment on table  stats.salt is 'The key of each open day''s listener hashes; deleted when the day is closed';
comment on column stats.salt.day is 'The day';
comment on column stats.salt.generation is 'Of the day''s rows';
comment on column stats.salt.key is '32 random bytes';

create table stats.listener_window (
    day          date           not null,
    generation   integer        not null default 0,
    show         text           not null,
    episode      text           not null,
    total_size   bigint         not null,
    listener     bytea          not null check (length(listener) = 16),
    is_allowed   boolean        not null default false,
    ranges       int8multirange not null,
    first_start  timestamptz    not null,
    requests     bigint         not null,
    bytes        bigint         not null,
    app          text           not null,
    app_type     text           not null,
    device       text           not null,
    country      text           not null,
    referrer     text           not null,
    list_version text           not null,
    counted      boolean        not null default false,
    primary key (day, generation, show, episode, total_size, listener)
);
comment on table  stats.listener_window is 'What one listener got of one version of an episode on one open day';
comment on column stats.listener_window.day is 'The day';
comment on column stats.listener_window.generation is 'Of the day''s rows';
comment on column stats.listener_window.show is 'The show';
comment on column stats.listener_window.episode is 'The episode';
comment on column stats.listener_window.total_size is 'Size of the file; 0 = unknown';
comment on column stats.listener_window.listener is 'Keyed hashes of address (8 bytes) and user agent (8), by the day''s key';
comment on column stats.listener_window.is_allowed is 'Its address may have any volume (R31)';
comment on column stats.listener_window.ranges is 'Bytes that were sent';
comment on column stats.listener_window.first_start is 'Start of the earliest request';
comment on column stats.listener_window.requests is 'Requests';
comment on column stats.listener_window.bytes is 'Bytes sent, repetitions included';
comment on column stats.listener_window.app is 'Name of the app; empty = unknown';
comment on column stats.listener_window.app_type is 'app, library, browser or unknown';
comment on column stats.listener_window.device is 'Kind of device; empty = unknown';
comment on column stats.listener_window.country is 'Country; ZZ = unknown';
comment on column stats.listener_window.referrer is 'Host that referred the earliest request; empty = none';
comment on column stats.listener_window.list_version is 'List that app and device were read from';
comment on column stats.listener_window.counted is 'Whether it is a download, when the day''s figures were last derived';

create table stats.download_day (
    day          date   not null,
    show         text   not null,
    episode      text   not null,
    app          text   not null,
    app_type     text   not null,
    device       text   not null,
    country      text   not null,
    list_version text   not null,
    downloads    bigint not null,
    bytes        bigint not null,
    primary key (day, show, episode, app, app_type, device, country, list_version)
);
comment on table stats.download_day is 'Downloads of each day, derived';

create table stats.download_hour (
    hour      timestamptz not null,
    day       date        not null,
    show      text        not null,
    episode   text        not null,
    downloads bigint      not null,
    primary key (day, show, episode, hour)
);
comment on table stats.download_hour is 'Downloads by the hour in which the listener began, derived';

create table stats.referrer_day (
    day       date   not null,
    show      text   not null,
    episode   text   not null,
    host      text   not null,
    downloads bigint not null,
    primary key (day, show, episode, host)
);
comment on table stats.referrer_day is 'Downloads by the site that referred the listener, derived';

create table stats.listener_day (
    day       date   not null,
    show      text   not null,
    listeners bigint not null,
    primary key (day, show)
);
comment on table stats.listener_day is 'Distinct listeners with a download (R28), derived; days cannot be added up (R29)';

create table stats.excluded_day (
    day        date    not null,
    generation integer not null default 0,
    reason     text    not null,
    requests   bigint  not null,
    primary key (day, generation, reason)
);
comment on table stats.excluded_day is 'Lines that do not count, by reason: with counted_requests they are all lines of the day';

create table stats.feed_day (
    day                  date   not null,
    generation           integer not null default 0,
    feed                 text   not null,
    app                  text   not null,
    requests             bigint not null,
    reported_subscribers bigint not null,
    primary key (day, generation, feed, app)
);
comment on table stats.feed_day is 'Fetches of feeds, and how many subscribers the fetchers say they have';

create table stats.unknown_agent (
    day        date    not null,
    generation integer not null default 0,
    agent      text    not null check (length(agent) <= 300),
    requests   bigint  not null,
    primary key (day, generation, agent)
);
comment on table stats.unknown_agent is 'User agents of open days that the list does not know; deleted when the day is closed';

create table stats.bad_line (
    source      text        not null,
    fingerprint bytea       not null,
    byte_offset bigint      not null,
    reason      text        not null,
    sample      text        not null check (length(sample) <= 200),
    found_at    timestamptz not null default clock_timestamp(),
    primary key (source, fingerprint, byte_offset)
);
comment on table stats.bad_line is 'Lines that could not be read, with their shape; kept for 14 days';

grant usage on schema stats to worker_stats, jobbko_operator, jobbko_reader;
grant select, insert, update, delete on all tables in schema stats to worker_stats;
revoke insert, delete on stats.source from worker_stats;
grant select on all tables in schema stats to jobbko_operator, jobbko_reader;
-- Who knows a day's key can find out whether an address is among its listeners.
revoke select on stats.salt, stats.listener_window, stats.unknown_agent from jobbko_operator, jobbko_reader;
grant select on stats.unknown_agent to jobbko_operator;
grant insert, update, delete on stats.source, stats.media, stats.episode to jobbko_operator;

commit;
