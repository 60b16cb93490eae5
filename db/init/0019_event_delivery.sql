begin;
insert into schema_migrations (version, name) values (19, 'event_delivery');
set local role jobbko_owner;

commit;
