-- Shows: the names and settings that hold for all episodes of a podcast, so that nobody types them twice.

begin;
insert into schema_migrations (version, name) values (10, 'shows');
set local role jobbko_owner;

create table show (
    name       text        primary key check (length(name) between 1 and 200),
    folder     text        unique check (length(folder) between 1 and 1000 and folder !~ '^/|/$|(^|/)\.\.?(/|$)'),
    language   text        check (length(language) between 2 and 4),
    hotwords   text[]      not null default '{}'
                           check (cardinality(hotwords) <= 100 and array_position(hotwords, null) is null),
    prompt     text        check (length(prompt) between 1 and 1000),
    changed_at timestamptz not null default now()
);
comment on table show is 'Podcasts, with what holds for the transcription of all their episodes';
comment on column show.name is 'What jobs call it';
comment on column show.changed_at is 'When somebody last set it';
comment on column show.folder is 'Below MEDIA_ROOT; audio in it belongs to the show where a job names none';
comment on column show.language is 'Of episodes whose job gives none';
comment on column show.hotwords is 'Names that are spoken in most episodes: hosts, the show itself; likeliest first';
comment on column show.prompt is 'Of episodes whose job gives none';

-- Whether the login of the transcribing worker is asking: these functions are of no use to another one.
create function called_by_transcriber() returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from job_type where name = 'whisper_transcribe' and role = session_user)
$$;

-- The show of that name; without a name, the one whose folder lies nearest above the path.
create function find_show(p_name text, p_path text)
returns table (name text, language text, hotwords text[], prompt text)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select show.name, show.language, show.hotwords, show.prompt
      from show
     where called_by_transcriber()
       and case when p_name is null then starts_with(p_path, show.folder || '/') else show.name = p_name end
     order by length(show.folder) desc
     limit 1
$$;
comment on function find_show is 'What holds for an episode: of the named show, or by its folder';

grant execute on function find_show to jobbko_worker;
grant select on show to jobbko_operator, jobbko_reader;
grant insert, update, delete on show to jobbko_operator;

commit;
