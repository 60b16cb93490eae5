"""The soak of the whole stack: twenty minutes of load and faults, after which every job is accounted for."""

import json
import subprocess
import sys

import pytest

from tests.databases import ROOT

MINUTES = 20


@pytest.mark.containers
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_is_lost_and_alerts_tell_the_truth_in_twenty_minutes_of_faults() -> None:
    ended = subprocess.run(
        [sys.executable, "bench/stack_soak.py", "--minutes", str(MINUTES)],
        cwd=ROOT, capture_output=True, text=True, timeout=3500,
    )  # fmt: skip

    assert ended.stdout, ended.stderr
    figures = json.loads(ended.stdout.splitlines()[-1])
    assert {name: figures[name] for name in ("unbalanced", "untrue", "grown")} == {
        "unbalanced": {}, "untrue": [], "grown": {},
    }  # fmt: skip
    assert ended.returncode == 0, figures
    assert figures["completed"].keys() >= {"whisper_transcribe", "openrouter_analyze", "research_clip", "stats_parse"}
    assert figures["chaos"]["kill"] > 0
