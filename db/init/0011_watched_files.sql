-- The watched folder: every state of a file becomes a job once, however many look and however often they restart.

begin;
insert into schema_migrations (version, name) values (11, 'watched_files');
set local role jobbko_owner;

create table watched_file (
    path        text        check (length(path) between 1 and 1024),
    size_bytes  bigint,
    modified_ns bigint,
    job_id      uuid        not null,
    found_at    timestamptz not null default now(),
    primary key (path, size_bytes, modified_ns)
);
comment on table watched_file is 'Files of the watched folder that became jobs';
comment on column watched_file.path is 'Below MEDIA_ROOT';
comment on column watched_file.size_bytes is 'The file''s size';
comment on column watched_file.found_at is 'When it became a job';
comment on column watched_file.modified_ns is 'The file''s time of change, in nanoseconds since 1970';
comment on column watched_file.job_id is 'The job; it may have been deleted since';

-- Which of these files, in this state, have not become jobs yet; their numbers in the arrays, from 1.
create function new_watched_files(p_paths text[], p_sizes_bytes bigint[], p_modified_ns bigint[])
returns setof integer
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select seen.number::integer
      from unnest(p_paths, p_sizes_bytes, p_modified_ns) with ordinality as seen (path, size_bytes, modified_ns, number)
     where called_by_transcriber()
       and not exists (select from watched_file as known
                        where known.path = seen.path and known.size_bytes = seen.size_bytes
                          and known.modified_ns = seen.modified_ns)
     order by seen.number
$$;
comment on function new_watched_files is 'Numbers of the files that have not become jobs yet';

-- Null when this state of the file became a job before. Two that ask at once: the second waits for the first's commit.
create function enqueue_watched_file(
    p_path text, p_size_bytes bigint, p_modified_ns bigint, p_analyze boolean default false
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_id      uuid := gen_random_uuid();
    v_payload jsonb := jsonb_build_object('path', p_path);
begin
    if not called_by_transcriber() then
        raise exception 'role % does not watch for whisper_transcribe', session_user using errcode = '42501';
    end if;
    insert into watched_file (path, size_bytes, modified_ns, job_id)
    values (p_path, p_size_bytes, p_modified_ns, v_id)
    on conflict do nothing;
    if not found then
        return null;
    end if;
    if p_analyze then
        v_payload := v_payload || '{"analyze": true}';
    end if;
    select id into v_id from enqueue_job('whisper_transcribe', v_payload);
    update watched_file set job_id = v_id
     where path = p_path and size_bytes = p_size_bytes and modified_ns = p_modified_ns;
    return v_id;
end
$$;
comment on function enqueue_watched_file is 'Makes a job of a file, once for each of its states; returns the job''s id';

grant execute on function new_watched_files, enqueue_watched_file to jobbko_worker;
grant select on watched_file to jobbko_operator, jobbko_reader;

commit;
