"""The admin view behind a real Caddy as docs/admin.md sets it up: TLS, a path prefix either way, a login by the proxy,
and an event stream that nobody holds back. The Caddyfile is the documentation's own.
"""

import contextlib
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.embedded_postgres import ending_with_parent, free_port
from tests.databases import ROOT, Database
from tests.services.admin_jobs import links
from tests.services.admin_site import OPERATOR, PASSWORD, AdminSite, admin_site_with
from tests.waiting import wait_until

PAGE = (ROOT / "docs" / "admin.md").read_text()
TOLD = re.findall(r"^```\n(.*?)^```$", PAGE[PAGE.index("## Behind a proxy") :], re.MULTILINE | re.DOTALL)
PLAIN, PREFIXED = TOLD[:2]
OPTIONS = """
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
    https_port {port}
    http_port {other}
}}
"""


@contextlib.contextmanager
def caddy(folder: Path, config: str, site: AdminSite, name: str) -> Iterator[httpx.Client]:
    """A client of the documented configuration, with a certificate of Caddy's own in place of a public one."""
    port, other = free_port(), free_port()
    config = config.replace("127.0.0.1:8080", f"127.0.0.1:{site.port}")
    config = config.replace(f"{name} {{", f"https://{name} {{\n    bind 127.0.0.1\n    tls internal", 1)
    file = folder / "Caddyfile"
    file.write_text(OPTIONS.format(port=port, other=other) + config)
    environ = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    program = Path(sys.executable).with_name("caddy")
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(
            [*ending_with_parent("KILL"), str(program), "run", "--config", str(file), "--adapter", "caddyfile"],
            env=environ, stdout=log, stderr=log,
        )  # fmt: skip
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    headers = {"Host": name, "Sec-Fetch-Site": "same-origin", "Origin": f"https://{name}"}
    client = httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=unchecked, headers=headers, timeout=20)

    def is_up() -> bool:
        assert process.poll() is None, (folder / "caddy.log").read_text()
        with contextlib.suppress(httpx.HTTPError):
            return client.get("/", extensions={"sni_hostname": name}).status_code != 502
        return False

    client.event_hooks = {"request": [lambda request: request.extensions.update(sni_hostname=name)]}
    try:
        wait_until(is_up, 20, what="Caddy to answer")
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait(20)


def act(client: httpx.Client, prefix: str) -> None:
    """Logs in, pauses a type, sees it, and hears of a job by the stream."""
    entered = client.post(f"{prefix}/login", data={"name": OPERATOR, "password": PASSWORD})
    assert (entered.status_code, entered.headers["location"]) == (303, f"{prefix}/")
    assert entered.headers["set-cookie"].startswith("__Host-jobbko_session=")
    cookie = entered.headers["set-cookie"].partition(";")[0]
    signed = {"Cookie": cookie}
    paused = client.post(f"{prefix}/types/test_job/pause", data={"minutes": "0"}, headers=signed)
    assert paused.headers["location"] == f"{prefix}/"
    page = client.get(f"{prefix}/", headers=signed)
    assert "Paused by an operator" in page.text
    assert [link for link in links(page.text) if not link.startswith(f"{prefix}/")] == []
    assert client.get(f"{prefix}/static/style.css", headers=signed).status_code == 200
    started = time.monotonic()
    with client.stream("GET", f"{prefix}/live", headers=signed | {"Accept-Encoding": "gzip"}) as stream:
        first = next(stream.iter_raw())
    assert first.startswith(b"retry: ")
    assert time.monotonic() - started < 5, "held back by the proxy"


def test_the_documented_configuration_serves_it_by_tls(database: Database, tmp_path: Path) -> None:
    settings = {"ADMIN_PROXY_ADDRESSES": "127.0.0.1", "ADMIN_HOSTS": "jobs.example.no"}
    with (
        admin_site_with(database, **settings) as site,
        caddy(tmp_path, PLAIN, site, "jobs.example.no") as client,
    ):
        act(client, "")


@pytest.mark.parametrize("directive", ["handle_path", "handle"])
def test_the_documented_configuration_serves_it_below_a_path(
    database: Database, tmp_path: Path, directive: str
) -> None:
    settings = {"ADMIN_PROXY_ADDRESSES": "127.0.0.1", "ADMIN_HOSTS": "suite.example.no", "ADMIN_ROOT_PATH": "/jobbko"}
    config = PREFIXED.replace("handle_path", directive)
    with (
        admin_site_with(database, **settings) as site,
        caddy(tmp_path, config, site, "suite.example.no") as client,
    ):
        act(client, "/jobbko")


def test_a_header_that_a_client_sends_is_nothing_where_the_proxy_takes_it_away(
    database: Database, tmp_path: Path
) -> None:
    settings = {
        "ADMIN_PROXY_ADDRESSES": "127.0.0.1", "ADMIN_HOSTS": "jobs.example.no", "ADMIN_PROXY_HEADER": "Remote-User",
    }  # fmt: skip
    stripping = PLAIN.replace("127.0.0.1:8080\n", "127.0.0.1:8080 {\n        header_up -Remote-User\n    }\n", 1)
    naming = PLAIN.replace("127.0.0.1:8080\n", "127.0.0.1:8080 {\n        header_up Remote-User kari\n    }\n", 1)
    with admin_site_with(database, **settings) as site:
        with caddy(tmp_path, stripping, site, "jobs.example.no") as client:
            assert client.get("/", headers={"Remote-User": "kari"}).status_code == 303
        with caddy(tmp_path, naming, site, "jobs.example.no") as client:
            page = client.get("/", headers={"Remote-User": "ola"}).text

    assert "kari" in page
    assert "ola" not in page
