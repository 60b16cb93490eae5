-- Accounts and sessions.

-- name: find_account
select name, role, password_hash from find_account(%(name)s::text)

-- name: has_accounts
select has_accounts() as answer

-- name: put_account
select put_account(%(name)s::text, %(role)s::text, %(password_hash)s::text, %(disabled)s::boolean) as outcome

-- name: account_exists
select exists (select from list_accounts() where name = %(name)s::text) as answer

-- name: proxy_account
-- One row, whether there is such an account or not.
select account.name as known, account.role, account.disabled, pg_current_snapshot()::text as cursor
  from (values (1)) as always
  left join list_accounts() as account on account.name = %(name)s::text

-- name: open_session
select open_session(%(account)s::text, %(token_hash)s::bytea, make_interval(secs => 3600 * %(lifetime_hours)s::float8),
                    make_interval(secs => 3600 * %(idle_hours)s::float8))

-- name: use_session
select name, role, pg_current_snapshot()::text as cursor
  from use_session(%(token_hash)s::bytea, make_interval(secs => 3600 * %(idle_hours)s::float8), %(touch)s::boolean)

-- name: close_session
select close_session(%(token_hash)s::bytea)

-- name: record_audit
select record_audit(%(action)s::text, p_subject => %(subject)s::text)
