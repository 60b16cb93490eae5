begin;
insert into schema_migrations (version, name) values (16, 'admin_access');
set local role jobbko_owner;

commit;
