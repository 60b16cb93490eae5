"""`jobs account` and `jobs token`: made, listed, changed and taken away; what is secret is shown once."""

import io

import pytest

from services.admin.access.commands import account
from services.admin.access.digests import digest
from services.admin.access.passwords import verifies
from services.admin.api.commands import token
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import ROOT, Database


def test_every_subcommand_and_option_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for group in (account, token):
        for name, command in group.commands.items():
            assert f"`jobs {group.name} {name}" in page, name
            for flag in [flag for option in command.params for flag in option.opts if flag.startswith("--")]:
                assert f"`{flag}" in page or f" {flag}" in page, f"{name} {flag}"


def hash_of(database: Database, name: str) -> str:
    return str(database.value("select password_hash from admin_account where name = %s", name))


def test_an_account_lives_from_add_to_remove(database: Database, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    added = jobs("account", "add", "kåre", "--role", "viewer")
    again = jobs("account", "add", "kåre", "--role", "operator")
    first = hash_of(database, "kåre")
    monkeypatch.setattr("sys.stdin", io.StringIO("et langt passord\n"))
    changed = jobs("account", "password", "kåre", "--password-stdin")
    second = hash_of(database, "kåre")
    jobs("account", "role", "kåre", "operator")
    jobs("account", "disable", "kåre")
    listed = jobs("account", "list")
    (row,) = jobs("account", "list", "--json").document
    jobs("account", "enable", "kåre")
    removed = jobs("account", "remove", "kåre")

    assert (added.code, len(added.out.strip()), added.out.strip() in added.err) == (ExitCode.OK, 24, False)
    assert verifies(added.out.strip(), first)
    assert (again.code, again.out) == (ExitCode.NOT_POSSIBLE, "")
    assert (changed.code, changed.out) == (ExitCode.OK, "kåre has another password\n")
    assert verifies("et langt passord", second)
    assert listed.lines[1].split()[:3] == ["kåre", "operator", "disabled"]
    assert (row["role"], row["disabled"], row["has_password"]) == ("operator", True, True)
    assert (removed.code, database.value("select count(*) from admin_account where name = 'kåre'")) == (ExitCode.OK, 0)
    actions = database.rows("select action, actor from audit_entry where subject = 'kåre' order by id")
    assert [row["action"] for row in actions] == ["account.create", *["account.change"] * 4, "account.delete"]
    assert all(row["actor"].endswith("(jobs)") for row in actions)


REFUSALS: list[tuple[str, ExitCode, str]] = [
    ("account add a/b --role viewer", ExitCode.REFUSED, "no name for an account"),
    ("account add kari", ExitCode.REFUSED, "--role"),
    ("account add kari --role viewer --password-stdin", ExitCode.REFUSED, "5 characters"),
    ("account password kari", ExitCode.NOT_FOUND, "no account"),
    ("account role kari viewer", ExitCode.NOT_FOUND, "no account"),
    ("account disable kari", ExitCode.NOT_FOUND, "no account"),
    ("account remove kari", ExitCode.NOT_FOUND, "no account"),
    ("token add -x --scope read", ExitCode.REFUSED, "-x"),
    ("token add å --scope read", ExitCode.REFUSED, "no name for a token"),
    ("token add x --scope all", ExitCode.REFUSED, "all"),
    ("token add x", ExitCode.REFUSED, "--scope"),
    ("token add x --scope read --for 1d --until 18:00", ExitCode.REFUSED, "both given"),
    ("token add x --scope read --until 2001-01-01", ExitCode.REFUSED, "expired"),
    ("token add x --scope read --until=", ExitCode.REFUSED, "'' is not a time"),
    ("token add x --scope read --for=", ExitCode.REFUSED, "'' is not a duration"),
    ("token revoke x", ExitCode.NOT_FOUND, "no token"),
]


def test_what_cannot_be_done_is_told_in_one_line(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, code, told in REFUSALS:
        monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
        ended = jobs(*arguments.split())
        assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), f"{arguments}: {ended.err}"
        assert told in ended.err, arguments


def test_a_token_is_shown_once_and_kept_as_a_hash(database: Database, jobs: Jobs) -> None:
    added = jobs("token", "add", "suite", "--scope", "read", "--scope", "enqueue", "--for", "90d")
    twice = jobs("token", "add", "suite", "--scope", "read")
    listed = jobs("token", "list")
    row = database.row("select *, api_token::text as text from api_token")
    revoked = jobs("token", "revoke", "suite")
    again = jobs("token", "revoke", "suite")
    other = jobs("token", "add", "suite", "--scope", "operate", "--json").document

    token = added.out.strip()
    assert (token[:7], len(token)) == ("jobbko_", 50)
    assert token not in added.err + listed.out + row["text"]
    assert row["fingerprint"] == digest(token)
    assert (row["scopes"], (row["expires_at"] - row["created_at"]).days) == (["enqueue", "read"], 89)
    assert (twice.code, "already" in twice.err) == (ExitCode.REFUSED, True)
    assert listed.lines[1].split()[:3] == ["suite", "enqueue", "read"]
    assert (revoked.out, again.code) == ("suite is revoked\n", ExitCode.NOT_POSSIBLE)
    assert other["scopes"] == ["operate"]
    assert [row["state"] for row in jobs("token", "list", "--all", "--json").document] == ["revoked", "valid"]
    assert len(jobs("token", "list", "--json").document) == 1


def test_readers_and_producers_may_make_no_tokens(database: Database, jobs: Jobs) -> None:
    for role in ("reader", "producer", "plain", "worker_test"):
        ended = jobs("token", "add", "x", "--scope", "operate", role=role)
        assert (ended.code, ended.out) == (ExitCode.NOT_ALLOWED, ""), role
        assert jobs("account", "add", "x", "--role", "operator", role=role).code == ExitCode.NOT_ALLOWED
        assert jobs("token", "list", role=role).code == ExitCode.NOT_ALLOWED

    with pytest.raises(Exception, match="permission denied"):
        database.connect("operator").execute("select fingerprint from api_token")
    with pytest.raises(Exception, match="permission denied"):
        database.connect("operator").execute("select * from use_api_token('\\x00')")
