"""Logging in and out: no session can be planted, stolen from the table or kept for ever, and guessing slows down."""

import hashlib
from typing import Any

import httpx
import pytest

from services.admin.access import passwords
from services.admin.access.attempts import Attempts
from tests.databases import Database
from tests.services.admin_site import COOKIE, OPERATOR, PASSWORD, AdminSite, admin_site_with


def sessions(database: Database) -> int:
    count: int = database.value("select count(*) from admin_session")
    return count


def cookie_of(answer: httpx.Response) -> str:
    return answer.headers["set-cookie"].partition("=")[2].partition(";")[0]


def test_a_person_logs_in_goes_where_they_wanted_and_logs_out(browser: Any, admin_site: AdminSite) -> None:
    context = browser.new_context(base_url=admin_site.url, java_script_enabled=False, locale="nb-NO")
    page = context.new_page()
    page.goto("/workers")
    page.get_by_label("Name").fill(OPERATOR)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text() == "The name or the password is wrong."
    assert page.get_by_label("Name").input_value() == OPERATOR
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    assert page.url == f"{admin_site.url}/workers"
    page.get_by_role("button", name="Log out").click()
    page.goto("/workers")
    assert "/login" in page.url
    context.close()


def test_the_table_of_sessions_lets_nobody_in(admin_site: AdminSite) -> None:
    entered = admin_site.log_in(admin_site.nobody)
    token = cookie_of(entered)
    stored = admin_site.database.value("select token_hash from admin_session")

    assert bytes(stored) == hashlib.sha256(token.encode()).digest()
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=lax" in entered.headers["set-cookie"]
    assert "Path=/;" in entered.headers["set-cookie"]
    assert PASSWORD not in str(admin_site.database.rows("select * from audit_entry"))


def test_a_token_that_was_planted_before_the_login_is_worth_nothing_after_it(admin_site: AdminSite) -> None:
    """Session fixation: the attacker knows the victim's cookie, and waits for the login."""
    planted = "planted-by-a-neighbouring-site"
    victim = admin_site.client()
    victim.cookies.set(COOKIE, planted, domain="127.0.0.1", path="/")
    assert admin_site.log_in(victim).status_code == 303

    attacker = admin_site.client()
    attacker.cookies.set(COOKIE, planted, domain="127.0.0.1", path="/")
    assert attacker.get("/").status_code == 303
    assert victim.get("/").status_code == 200


def test_who_logs_in_again_leaves_no_old_session_behind(admin_site: AdminSite) -> None:
    client = admin_site.client(OPERATOR)
    before = client.cookies[COOKIE]
    admin_site.log_in(client)

    old = admin_site.client()
    old.cookies.set(COOKIE, before, domain="127.0.0.1", path="/")
    assert (old.get("/").status_code, sessions(admin_site.database)) == (303, 1)


def test_logging_out_ends_the_session_in_the_database_too(admin_site: AdminSite) -> None:
    client = admin_site.client(OPERATOR)
    token = client.cookies[COOKIE]
    client.post("/logout")
    thief = admin_site.client()
    thief.cookies.set(COOKIE, token, domain="127.0.0.1", path="/")

    assert (thief.get("/").status_code, sessions(admin_site.database)) == (303, 0)


@pytest.mark.parametrize(
    "change",
    [
        "update admin_session set expires_at = now()",
        "update admin_session set seen_at = now() - interval '2 hours'",
        "select put_account('kari', p_disabled => true)",
        "select put_account('kari', p_password_hash => 'scrypt$4$8$1$AAAA$AAAA')",
        "select put_account('kari', p_role => 'viewer')",
        "select drop_account('kari')",
    ],
)
def test_a_session_ends_by_time_and_by_any_change_of_its_account(shared_admin_site: AdminSite, change: str) -> None:
    database = shared_admin_site.database
    database.rows("select put_account('kari', 'operator', %s, false)", "scrypt$4$8$1$AAAA$AAAA")
    client = shared_admin_site.client(OPERATOR)
    assert client.get("/").status_code == 200
    database.rows(change)

    assert client.get("/").status_code == 303


def test_a_page_that_only_looks_again_keeps_no_session_awake(admin_site: AdminSite) -> None:
    database = admin_site.database
    client = admin_site.client(OPERATOR)
    database.rows("update admin_session set seen_at = now() - interval '1 hour'")
    before = database.value("select seen_at from admin_session")
    client.get("/", headers={"X-Live": "1"})
    assert database.value("select seen_at from admin_session") == before
    client.get("/")
    assert database.value("select seen_at from admin_session") > before


@pytest.mark.parametrize(
    ("wanted", "location"),
    [
        ("/workers?x=1", "/workers?x=1"),
        ("//evil.example", "/"),
        ("//[", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/x\r\nSet-Cookie: a=b", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_to_a_page_of_ours_only(shared_admin_site: AdminSite, wanted: str, location: str) -> None:
    shared_admin_site.database.rows(
        "select put_account('per', 'viewer', %s, false)", shared_admin_site.database.value(
            "select password_hash from admin_account where name = 'ola'")
    )  # fmt: skip
    client = shared_admin_site.client()
    answer = client.post("/login", data={"name": "per", "password": PASSWORD, "next": wanted})

    assert (answer.status_code, answer.headers["location"]) == (303, location)


def test_guessing_slows_down_by_name_and_by_address(admin_site: AdminSite) -> None:
    client = admin_site.nobody
    refused = [admin_site.log_in(client, "kari", f"guess {number}") for number in range(6)]
    assert [answer.status_code for answer in refused] == [401] * 5 + [429]
    assert 0 < int(refused[-1].headers["retry-after"]) <= 2
    assert "Too many attempts" in refused[-1].text

    assert admin_site.log_in(client, "ola").status_code == 429, "the address waits, whatever name it tries"
    assert sessions(admin_site.database) == 0


def test_each_further_failure_waits_longer_and_a_success_frees_the_name_alone() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    waits = []
    for _ in range(20):
        waits.append(attempts.wait_seconds(["name a"]))
        attempts.failed(["name a", "address 1"])
    assert waits[:9] == [0, 0, 0, 0, 0, 2, 4, 8, 16]
    assert max(waits) == 900

    attempts.succeeded("name a")
    assert attempts.wait_seconds(["name a"]) == 0
    assert attempts.wait_seconds(["name a", "address 1"]) == 900
    now[0] = 900
    assert attempts.wait_seconds(["address 1"]) == 0
    now[0] = 5000
    attempts.failed(["name b"])
    assert attempts.wait_seconds(["address 1"]) == 0, "forgotten after an hour"


def test_a_flood_of_names_takes_no_more_than_its_share_of_memory() -> None:
    attempts = Attempts(lambda: 0.0)
    for number in range(30_000):
        attempts.failed([f"name {number}"])

    assert len(attempts._failures) <= 10_000


def test_a_name_that_nobody_has_costs_as_much_work_as_one_that_somebody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = passwords.hash_password("right")
    work = []
    real = hashlib.scrypt
    monkeypatch.setattr(
        hashlib, "scrypt", lambda *args, **kind: work.append(kind | {"salt": b""}) or real(*args, **kind)
    )

    assert not passwords.verifies("wrong", hashed)
    assert not passwords.verifies("wrong", None)
    assert work[0] == work[1]
    assert passwords.verifies("right", hashed)


@pytest.mark.parametrize("hashed", ["", "x", "scrypt$14$8", "scrypt$a$b$c$d$e", "md5$4$8$1$AAAA$AAAA"])
def test_a_hash_that_is_none_lets_nobody_in(hashed: str) -> None:
    assert not passwords.verifies("", hashed)


PROXY = {"ADMIN_PROXY_ADDRESSES": "127.0.0.1", "ADMIN_PROXY_HEADER": "Remote-User"}


def test_a_trusted_proxy_names_the_person(database: Database) -> None:
    with admin_site_with(database, **PROXY) as site:
        as_ola = site.client(headers={"Remote-User": "ola"})
        assert "ola" in as_ola.get("/").text
        assert as_ola.post("/types/test_job/resume").status_code == 403, "a viewer, as their account says"
        assert "Log out" not in as_ola.get("/").text, "the proxy would let them in again"
        as_kari = site.client(headers={"Remote-User": "kari"})
        assert as_kari.post("/types/test_job/pause", data={"minutes": "0"}).status_code == 303
        assert database.value("select actor from audit_entry where action = 'job_type.pause'") == "kari"

        for stranger in ({"Remote-User": "nobody"}, {"Remote-User": ""}, {"Remote-User": "KARI"}, {}):
            assert site.client(headers=stranger).get("/").status_code == 303, stranger
        twice = site.client().get("/", headers=[("Remote-User", "kari"), ("Remote-User", "ola")])
        assert twice.status_code == 303, "which of them is meant nobody knows"
        database.rows("select put_account('kari', p_disabled => true)")
        assert as_kari.get("/").status_code == 303


def test_the_header_is_nothing_from_anyone_else(database: Database) -> None:
    with admin_site_with(database, **PROXY | {"ADMIN_PROXY_ADDRESSES": "10.0.0.1, 192.168.0.0/16"}) as site:
        forged = site.client(headers={"Remote-User": "kari", "X-Forwarded-For": "10.0.0.1"})

        assert forged.get("/").status_code == 303


def test_a_person_without_an_account_becomes_what_the_setting_says(database: Database) -> None:
    with admin_site_with(database, **PROXY, ADMIN_PROXY_NEW_ACCOUNTS="viewer") as site:
        new = site.client(headers={"Remote-User": "new@example.no"})
        assert "new@example.no" in new.get("/").text
        assert new.post("/types/test_job/resume").status_code == 403
        database.rows("select put_account('new@example.no', 'viewer', null, true)")
        assert new.get("/").status_code == 303, "disabled is not the same as unknown"


def test_behind_tls_the_cookie_is_one_that_only_tls_may_set(database: Database) -> None:
    with admin_site_with(database, ADMIN_PROXY_ADDRESSES="127.0.0.1") as site:
        https = site.client(headers={"X-Forwarded-Proto": "https"})
        cookie = site.log_in(https).headers["set-cookie"]
        planted = site.client(OPERATOR, headers={"X-Forwarded-Proto": "https"})
        assert planted.get("/").status_code == 303, "the cookie of plain HTTP is not read"

    assert cookie.startswith("__Host-jobbko_session=")
    assert "Secure" in cookie


def test_failures_count_for_the_client_behind_the_proxy(database: Database) -> None:
    with admin_site_with(database, ADMIN_PROXY_ADDRESSES="127.0.0.1") as site:
        bad = site.client(headers={"X-Forwarded-For": "203.0.113.9, 198.51.100.7"})
        for number in range(6):
            last = site.log_in(bad, f"name {number}", "x").status_code
        other = site.client(headers={"X-Forwarded-For": "198.51.100.7, 203.0.113.10"})

        assert last == 429, "the last address is what our proxy saw; what stands before it anybody may have written"
        assert site.log_in(other).status_code == 303
