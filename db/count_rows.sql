select 'select json_object_agg(name, rows order by name) from ('
    || string_agg(format('select %L as name, count(*) as rows from %s', oid::regclass, oid::regclass), ' union all ')
    || ') as tables'
  from pg_class where relkind = 'r' and relnamespace in ('public'::regnamespace, 'stats'::regnamespace) \gexec
