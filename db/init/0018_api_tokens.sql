begin;
insert into schema_migrations (version, name) values (18, 'api_tokens');
set local role jobbko_owner;

commit;
