"""Messages without secrets: of a text that was cut the last word is left out, which may be half a secret."""

import re

import pytest

from services.admin.messages import CUTS, redacted, redacted_json
from sidelinja_jobs.queue import ERROR_LIMIT, TRACEBACK_LIMIT
from sidelinja_jobs.redaction import MASK
from tests.databases import ROOT

CUT = re.compile(r"left\((?:\w+\.)?(?:progress_note|error_msg|pause_reason|traceback|payload::text), (\d+)\)")


def test_every_query_cuts_where_it_is_known() -> None:
    statements = "".join(path.read_text() for path in (ROOT / "services" / "admin").rglob("*.sql"))

    assert len(CUT.findall(statements)) > 10
    assert {int(length) for length in CUT.findall(statements)} | {ERROR_LIMIT, TRACEBACK_LIMIT} <= CUTS


@pytest.mark.parametrize("length", sorted(CUTS))
def test_half_a_password_at_a_cut_is_left_out(length: int) -> None:
    whole = ("word " * length)[: length - 20] + " https://me:hunter2-hunter2@host.no"

    assert redacted(whole[:length]) == ("word " * length)[: length - 20] + " …"
    assert redacted(whole).endswith(f" https://me:{MASK}@host.no")


def test_half_a_field_at_a_cut_is_left_out() -> None:
    begun = f'{{"text": "{"a " * 985}", "password": "hunter2"}}'[:2000]

    assert begun.endswith("hunt")
    assert "hunt" not in redacted_json(begun)


def test_a_text_of_another_length_stays_as_it_is() -> None:
    assert redacted("x" * 501) == "x" * 501
    assert redacted(None) == ""


def test_a_text_that_is_one_word_is_left_out_where_it_was_cut() -> None:
    assert redacted("x" * 2000) == "…"
