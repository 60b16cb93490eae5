"""A soak of the whole stack in containers: a mixed load, faults of every kind, and afterwards an account of each job.

    make stack-soak ARGS="[--minutes 20] [--seed N]"

Calm first, then a chaos that kills, restarts, cuts and fills, then calm again. A producer in a container of its own
enqueues all the while; OpenRouter is a stand-in on this machine. Ends with 1 when a job is not accounted for, when an
alert said what was not so or kept silent, or when a service took more and more memory; the last line is JSON.
Alerts wait as long as they are shipped in 20 minutes, and in a shorter run that much less.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from bench.stack_soak_accounts import balance, figures
from bench.stack_soak_alerts import verdicts, write_rules
from bench.stack_soak_chaos import Chaos
from bench.stack_soak_load import ORDERS, LogWriter, cut_pieces, finish_log
from bench.stack_soak_memory import MemoryWatch
from tests.e2e.producer import producing
from tests.e2e.running_stack import RunningStack
from tests.openrouter_standin import StandIn
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "jobbko-soak"
SHIPPED_MINUTES = 20  # in which alerts wait as long as in production
CHAOS = (0.15, 0.75)  # of the time, between which things go wrong
LOAD_ENDS = 0.9
DRAIN_SECONDS = 300
# Deaths are to be noticed soon.
SHORT = "update job_type set lease_seconds = 15, backoff_base_seconds = 2"
# A volume in memory, which can be filled.
SMALL_MEDIA = """
volumes:
  media:
    driver_opts: {type: tmpfs, device: tmpfs, o: "size=8m,uid=10001,gid=10001,mode=0755"}
"""
UNFINISHED = """
select count(*) from job_queue where status in ('pending', 'retry', 'running') and job_type <> 'stats_parse'
"""


class SoakStack(RunningStack):
    """The stack under a name of its own: alerts that wait in proportion, a media volume that can be filled."""

    def __init__(self, folder: Path, minutes: float) -> None:
        super().__init__()
        for name in ("logs", "prometheus"):
            (folder / name).mkdir()
        folder.chmod(0o755)  # the services run as other users
        self.rules, self.logs, overlay = folder / "prometheus", folder / "logs", folder / "soak.yaml"
        self.factor = min(1.0, minutes / SHIPPED_MINUTES)
        overlay.write_text(SMALL_MEDIA)
        write_rules(self.rules, self.factor)
        self.environ |= {
            "COMPOSE_PROJECT_NAME": PROJECT, "COMPOSE_FILE": f"{ROOT / 'compose.yaml'}:{overlay}",
            "JOBBKO_VERSION": "soak", "CADDY_LOG_DIR": str(self.logs), "PROMETHEUS_DIR": str(self.rules),
            "STATS_EVERY_MINUTES": "1", "OPENROUTER_DAY_BUDGET_USD": "1000", "OPENROUTER_PROFILE": "openrouter",
        }  # fmt: skip

    def start(self, standin: StandIn, media: Path) -> None:
        self.environ["OPENROUTER_BASE_URL"] = standin.base_url
        self.compose("up", "--detach", "--wait")
        for name in cut_pieces(media):
            self.make("add", f"FILE={media / name}", f"AS={name}")
        self.sql(SHORT)
        self.compose("restart", "--no-deps", "whisper", "research", "stats")
        self.make("key", input=f"{standin.key}\n")  # restarts openrouter and research, too


def soak(stack: SoakStack, minutes: float) -> dict[str, Any]:
    """Everything in order; returns the figures."""
    stack.compose("build", "--quiet")
    stack.compose("create")  # the networks: the stand-in listens on an address of one
    with StandIn(host=stack.host_address("egress"), balance="1000000") as standin:
        with tempfile.TemporaryDirectory() as media:
            stack.start(standin, Path(media))
        chaos, memory, log = Chaos(stack), MemoryWatch(stack), LogWriter(stack.logs)
        begun = time.time()
        with memory, log, producing(stack, ORDERS) as producer:
            while (share := (time.time() - begun) / (minutes * 60)) < LOAD_ENDS:
                chaos.planned(share)
                if CHAOS[0] <= share < CHAOS[1]:
                    chaos.step()
                elif share >= CHAOS[1] and not chaos.is_over:
                    chaos.end()
                time.sleep(1)
            producer.stop()
            log.stop()
            emptied = drained(stack)
            finish_log(stack, log.lines)
            time.sleep(max(0.0, begun + minutes * 60 - time.time()))
            asked, refused = producer.asked(), producer.refused()
        return {
            **figures(stack),
            "asked": len(asked),
            "refused": len(refused),
            "billed_calls": standin.billed_count,
            "chaos": dict(chaos.counts),
            "memory_mb": memory.medians(),
            "emptied": emptied,
            "unbalanced": balance(stack, asked, standin.billed_count, log.lines),
            "untrue": verdicts(stack, chaos.diary, begun),
            "grown": memory.grown(),
        }


def drained(stack: SoakStack) -> bool:
    """Whether everything that was asked for ended in time."""
    try:
        wait_until(lambda: stack.sql(UNFINISHED) == "0", DRAIN_SECONDS, every=2, what="the queue to become empty")
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return False
    return True


@click.command()
@click.option("--minutes", default=20.0, show_default=True, help="Of load, faults and the calm around them.")
@click.option("--seed", default=None, type=int, help="Of the order of faults; their times still vary.")
def main(minutes: float, seed: int | None) -> None:
    """Soak the stack."""
    random.seed(seed)
    with tempfile.TemporaryDirectory(prefix="jobbko-soak-") as folder:
        stack = SoakStack(Path(folder), minutes)
        stack.remove()
        try:
            found = soak(stack, minutes)
        except BaseException:
            print(stack.compose("logs", "--no-color", "--tail", "40", check=False), file=sys.stderr)
            raise
        finally:
            stack.remove()
    for name, value in found.items():
        print(f"{name:<16}", value)
    print(json.dumps(found, default=str))
    is_bad = found["unbalanced"] or found["untrue"] or found["grown"] or not found["emptied"]
    sys.exit(1 if is_bad else 0)


if __name__ == "__main__":
    main()
