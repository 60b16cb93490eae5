"""The demo ends its workers soon, also one that finishes what it is at."""

import subprocess
import sys
import time

from demo.stack import stop

DRAINING = """
import signal, sys, time
asked = []
def on_term(*_):
    asked.append(time.monotonic())
    if len(asked) > 1 and asked[-1] - asked[0] > 1.0:
        sys.exit(7)
signal.signal(signal.SIGTERM, on_term)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


def test_a_worker_that_drains_is_asked_again_and_ends_in_order() -> None:
    """As `sidelinja_jobs` does: the second signal ends the drain time."""
    worker = subprocess.Popen([sys.executable, "-c", DRAINING], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    worker.stdout.readline()
    started = time.monotonic()
    stop(worker)

    assert worker.returncode == 7
    assert time.monotonic() - started < 8
    worker.stdout.close()
