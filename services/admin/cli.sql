-- Statements of `jobs account` and `jobs token`. They run as jobbko_operator.

-- name: cli_list_accounts
select name, role, has_password, disabled, created_at, changed_at, sessions, seen_at, now() as read_at
  from list_accounts()

-- name: cli_add_account
-- One that is there already is left alone.
select case when exists (select from list_accounts() where name = %(name)s::text) then 'exists'
            else put_account(%(name)s::text, %(role)s::text, %(password_hash)s::text) end as outcome

-- name: cli_change_account
select put_account(%(name)s::text, p_role => %(role)s::text, p_password_hash => %(password_hash)s::text,
                   p_disabled => %(disabled)s::boolean) as outcome

-- name: cli_remove_account
select drop_account(%(name)s::text)

-- name: cli_list_tokens
select name, scopes,
       case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'valid' end as state,
       created_by, created_at, expires_at, last_used_at, revoked_by, revoked_at, now() as read_at
  from api_token
 where %(all)s::boolean or (revoked_at is null and (expires_at is null or expires_at > now()))
 order by name, created_at

-- name: cli_token_end
select now() + make_interval(secs => %(seconds)s::float8) as expires_at, now() as read_at

-- name: cli_add_token
select add_api_token(%(name)s::text, %(fingerprint)s::bytea, %(scopes)s::text[], %(expires_at)s::timestamptz) as id

-- name: cli_revoke_token
select revoke_api_token(%(name)s::text) as outcome
