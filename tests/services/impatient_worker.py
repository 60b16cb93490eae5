"""A worker that asks a language model, whose half minutes of an outage are a second: `python -m … services.openrouter`.

Run by tests alone.
"""

import runpy
import sys

from openrouter_client import outage, outcomes, waits

outage.OUTAGE_SECONDS = 1.0
outcomes.FIRST_WAIT_SECONDS = 0.1
waits.LEAST_SPREAD_SECONDS = 0.1

if __name__ == "__main__":
    runpy.run_module(sys.argv[1], run_name="__main__")
