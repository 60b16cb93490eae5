-- Statements of `jobs account`. They run as jobbko_operator.

-- name: list_accounts
select name, role, has_password, disabled, created_at, changed_at, sessions, seen_at, now() as read_at
  from list_accounts()

-- name: add_account
-- One that is there already is left alone.
select case when exists (select from list_accounts() where name = %(name)s::text) then 'exists'
            else put_account(%(name)s::text, %(role)s::text, %(password_hash)s::text) end as outcome

-- name: change_account
select put_account(%(name)s::text, p_role => %(role)s::text, p_password_hash => %(password_hash)s::text,
                   p_disabled => %(disabled)s::boolean) as outcome

-- name: remove_account
select drop_account(%(name)s::text)
