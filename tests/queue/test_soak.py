"""The soak in small: a minute of faults, after which every job is accounted for. `make soak` runs ten."""

import json
import subprocess
import sys

import pytest

from tests.databases import ROOT


@pytest.mark.long
@pytest.mark.timeout(600)
def test_nothing_is_lost_in_a_minute_of_faults() -> None:
    ended = subprocess.run(
        [sys.executable, "bench/soak.py", "--minutes", "1"], cwd=ROOT, capture_output=True, text=True, timeout=590
    )

    figures = json.loads(ended.stdout.splitlines()[-1])
    assert figures["unbalanced"] == {}, figures
    assert ended.returncode == 0, figures
    assert figures["completed"] > 500
    assert figures["runs_killed"] > 0
