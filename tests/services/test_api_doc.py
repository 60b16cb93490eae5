"""docs/api.md: every example is run against a running service, and what it says of the code holds."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
from psycopg.types.json import Jsonb

from services.admin.api import authentication, feeds, tokens, watch
from services.admin.api.problems import KINDS, ProblemDocument
from services.admin.api.routes import OPERATIONS
from services.admin.api.shapes import LONGEST_WAIT_SECONDS
from services.admin.pages import job_source
from services.research.payload import ClipPayload
from services.whisper.payload import WhisperPayload
from sidelinja_jobs.cli.payloads import parsed
from sidelinja_jobs.cli.schemas import problems
from tests.databases import ROOT, Database
from tests.services.admin_site import AdminSite
from tests.services.api_client import make_token
from tests.waiting import wait_until

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def publish_schemas(site: AdminSite) -> None:
    for name, kind in (("whisper_transcribe", WhisperPayload), ("research_clip", ClipPayload)):
        schema = Jsonb(msgspec.json.schema(kind))
        site.database.rows("update job_type set payload_schema = %s where name = %s", schema, name)


def test_every_example_for_the_shell_does_what_the_page_says(admin_site: AdminSite) -> None:
    publish_schemas(admin_site)
    environ = {"API": f"{admin_site.url}/api/v1", "TOKEN": make_token(admin_site), "PATH": "/usr/bin:/bin"}
    script = "set -euo pipefail\n" + "\n".join(f"{block}\necho" for block in blocks("sh"))

    ended = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count('"outcome":"created"') == 3
    for told in ("cancelled", "retried", "changed", "paused", "resumed", "next_cursor", "<feed xmlns"):
        assert told in ended.stdout, told
    assert admin_site.database.value("select count(*) from job_queue") == 4


def test_the_example_in_python_enqueues_waits_and_prints_the_result(admin_site: AdminSite, tmp_path: Path) -> None:
    publish_schemas(admin_site)
    (program,) = blocks("python")
    (tmp_path / "example.py").write_text(program)
    environ = {"API": f"{admin_site.url}/api/v1", "TOKEN": make_token(admin_site)}

    def work() -> None:
        wait_until(lambda: admin_site.app.state.watch._waiting, 30, what="the example to wait")
        admin_site.database.rows(
            "update job_queue set status = 'completed', completed_at = now(), result = '{\"text\": \"Hei\"}'"
        )

    worker = threading.Thread(target=work)
    worker.start()
    ended = subprocess.run(
        [sys.executable, tmp_path / "example.py"], env=environ, capture_output=True, text=True, timeout=60
    )
    worker.join()

    assert (ended.returncode, ended.stdout) == (0, "{'text': 'Hei'}\n"), ended.stderr


def test_the_page_says_what_the_code_does() -> None:
    (shown,) = blocks("json")
    document = msgspec.json.decode(shown, type=ProblemDocument)
    (found,) = problems(parsed('{"pth": 1}'), msgspec.json.schema(WhisperPayload))

    assert KINDS[document.code].title == document.title
    assert found == f"{document.errors[0].field} {document.errors[0].message}"
    for scope in tokens.SCOPES:
        assert f"| `{scope}` |" in PAGE
    for code in re.findall(r"code `(\w+)`", PAGE):
        assert code in KINDS
    for path in re.findall(r"`GET (/[\w/{}-]+)`", PAGE):
        assert path in {operation.path for operation in OPERATIONS if operation.method == "GET"}, path
    failures = authentication.TokenCheck().failures
    for sentence in (
        f"up to {LONGEST_WAIT_SECONDS} seconds",
        f"{job_source.SCANNED_ROWS:,} jobs at most",
        f"At most {watch.MOST_LISTENING} listen at once",
        f"the {feeds.MOST_ENTRIES} newest failures",
        f"{failures.most} wrong tokens within a minute",
    ):
        assert sentence in " ".join(PAGE.split()), sentence
    assert failures.window_seconds == 60


def test_events_are_kept_as_long_as_the_page_says(database: Database) -> None:
    days = database.value("select keep_event_days from retention")

    assert f"({days} days: `keep_event_days` of the table `retention`)" in " ".join(PAGE.split())
