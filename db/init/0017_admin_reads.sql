begin;
insert into schema_migrations (version, name) values (17, 'admin_reads');
set local role jobbko_owner;

commit;
