-- Statements of the whisper worker and its watch, beside those of the queue.

-- name: find_show
select name, language, hotwords, prompt from find_show(%(name)s, %(path)s)

-- name: new_watched_files
select number
  from new_watched_files(%(paths)s::text[], %(sizes_bytes)s::bigint[], %(modified_ns)s::bigint[]) as number

-- name: enqueue_watched_file
select enqueue_watched_file(%(path)s, %(size_bytes)s, %(modified_ns)s, %(analyze)s) as id
