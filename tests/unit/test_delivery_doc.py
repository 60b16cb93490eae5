"""docs/delivery.md says what the code does: its document, its two verifiers, settings, commands, addresses."""

import dataclasses
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from services.admin.delivery.batch import DOWN_AFTER_JOBS
from services.admin.delivery.commands import deliveries
from services.admin.delivery.events import LONGEST_ERROR, LONGEST_EXTRA, cloud_event
from services.admin.delivery.policy import LONGEST_PAUSE_SECONDS
from services.admin.delivery.settings import DeliverySettings, is_near
from services.admin.delivery.spacetimedb import HOLDING, MOST_TRIES_OF_A_RAISING_REDUCER, arguments
from services.admin.delivery.verdicts import LONGEST_RETRY_AFTER
from services.admin.delivery.webhook import PASSING, Webhook
from tests.databases import ROOT
from tests.unit.delivery_events import EPOCH, event

PAGE = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def message() -> tuple[dict[str, str], bytes]:
    outgoing = Webhook("https://example.net/", ["whsec_" + "A" * 32, SECRET], "/jobbko").request(event(), EPOCH)
    return {name.lower(): value for name, value in outgoing.headers.items()}, outgoing.body


def test_the_document_on_the_page_is_what_is_sent() -> None:
    assert json.loads(block("json")) == json.loads(cloud_event(event(), "/jobbko", EPOCH))


def test_the_python_on_the_page_tells_a_genuine_event_from_a_forged_one() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)  # noqa: S102 - the page's own text
    headers, body = message()
    late = headers | {"webhook-timestamp": str(int(time.time()) - 301)}

    assert names["is_genuine"](SECRET, headers, body)
    assert not names["is_genuine"](SECRET, headers, body + b" ")
    assert not names["is_genuine"](SECRET, late, body)
    assert not names["is_genuine"]("whsec_" + "B" * 32, headers, body)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node on the PATH")
def test_the_javascript_on_the_page_does_the_same(tmp_path: Path) -> None:
    headers, body = message()
    (tmp_path / "page.mjs").write_text(block("js"))
    (tmp_path / "main.mjs").write_text(
        "import { isGenuine } from './page.mjs';\n"
        f"const headers = {json.dumps(headers)}, body = Buffer.from({json.dumps(body.decode())});\n"
        f"const secret = {json.dumps(SECRET)}, other = 'whsec_' + 'B'.repeat(32);\n"
        "console.log(isGenuine(secret, headers, body), isGenuine(secret, headers, Buffer.from('x')),\n"
        "  isGenuine(other, headers, body), isGenuine(secret, { ...headers, 'webhook-timestamp': '1' }, body));\n"
    )
    ran = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)

    assert ran.stdout.split() == ["true", "false", "false", "false"]


def test_every_setting_is_told_with_its_default() -> None:
    rows = {found[1]: line for line in PAGE.splitlines() if (found := re.match(r"\| `(DELIVERY_[A-Z_]+)` \|", line))}
    fields = {
        field.metadata["env"]: field
        for field in dataclasses.fields(DeliverySettings)
        if field.metadata["env"].startswith("DELIVERY_")
    }

    assert rows.keys() == fields.keys()
    for name, field in fields.items():
        told = rows[name].split("|")[3].strip()
        default = "none" if field.default is None else str(field.default).lower()
        assert told == default or (default == "" and told in ("all", "none")), name


def test_every_command_is_told() -> None:
    assert set(re.findall(r"^\| `jobs deliveries (\w+)", PAGE, re.MULTILINE)) == set(deliveries.commands)


def test_addresses_answers_and_arguments_are_the_ones_of_the_code() -> None:
    for ending in re.findall(r"ends in (.*?)\.\n", PAGE)[0].replace("`", "").split(", "):
        assert is_near(f"name{ending}")
    row = next(line for line in PAGE.splitlines() if "connection that breaks" in line)
    assert {int(status) for status in re.findall(r"\b4\d\d\b", row)} == PASSING
    row = next(line for line in PAGE.splitlines() if "the sink waits, asks again" in line)
    assert [int(status) for status in re.findall(r"\b4\d\d\b", row)] == sorted(HOLDING)
    told = PAGE.partition("The arguments, in their order: ")[2].partition("strings where")[0]
    assert len(re.findall(r"`\w+`", told)) + 2 == len(arguments(event(), EPOCH)), "and two sentences"


@pytest.mark.parametrize(
    ("value", "known", "told"),
    [
        (LONGEST_ERROR, 500, "at most 500 characters"),
        (LONGEST_EXTRA, 16 * 1024, "Over 16 KB"),
        (LONGEST_RETRY_AFTER, 86400, "waits so long, a day at most"),
        (DOWN_AFTER_JOBS, 3, "When events of three jobs in a row fail"),
        (LONGEST_PAUSE_SECONDS, 60, "at least once a minute"),
        (MOST_TRIES_OF_A_RAISING_REDUCER, 5, "tried five times, then parked"),
    ],
)
def test_figures_are_the_ones_of_the_code(value: float, known: float, told: str) -> None:
    assert value == known
    assert told in " ".join(PAGE.split())
