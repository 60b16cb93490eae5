begin;
insert into schema_migrations (version, name) values (20, 'retention');
set local role jobbko_owner;

commit;
