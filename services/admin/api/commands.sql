-- Statements of `jobs token`. They run as jobbko_operator.

-- name: list_tokens
select name, scopes,
       case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'valid' end as state,
       created_by, created_at, expires_at, last_used_at, revoked_by, revoked_at, now() as read_at
  from api_token
 where %(all)s::boolean or (revoked_at is null and (expires_at is null or expires_at > now()))
 order by name, created_at

-- name: token_end
select now() + make_interval(secs => %(seconds)s::float8) as expires_at, now() as read_at

-- name: add_token
select add_api_token(%(name)s::text, %(fingerprint)s::bytea, %(scopes)s::text[], %(expires_at)s::timestamptz) as id

-- name: revoke_token
select revoke_api_token(%(name)s::text) as outcome
