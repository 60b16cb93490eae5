"""What goes wrong during the stack's soak: containers die and restart, networks are cut, disks fill, people scale."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.stack_soak_alerts import Deed
from tests.e2e.running_stack import RunningStack

WORKERS = ("whisper", "openrouter", "research", "stats")
KILLED = (*WORKERS, "delivery")
MOST_REPLICAS = 3
NOBODYS = "insert into job_queue (job_type, payload) values ('nobodys', '{}') returning id"
BUSY = "select distinct split_part(worker_id, ':', 1) from job_queue where status = 'running'"
# What a person does once the cause is gone; wrong payloads stay wrong.
RETRY = """
select done from act_on_jobs('retry', array(
    select id from job_queue where status = 'error' and error_class not in ('bad_payload', 'cancelled')), '{error}')
"""
# Of the 8 MB of the media volume, 0.8 are a tenth; the pieces and their transcripts take 0.3.
NEARLY_FULL = "dd if=/dev/zero of=/media/ballast bs=1k count=7400"
FULL = "dd if=/dev/zero of=/media/last bs=1k 2>/dev/null; ls -l /media/last"
FAILURES_SECONDS = 30 * 60  # for which ManyFailures counts a failed run


class Chaos:
    """Does one thing after the other at random, and a few at their time; remembers what alerts have to tell, or may."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self.counts: Counter[str] = Counter()
        self.diary: list[Deed] = []
        self.is_over = False
        self._nobodys = ""
        self._begun: dict[str, float] = {}
        self._next_at = 0.0
        # Share of the time -> what happens then. Alerts wait for a quarter of the time before they tell, and begin to
        # wait anew when the state of the queue is not known: between 0.16 and 0.64 database and admin view are up.
        self._plan: list[tuple[float, Callable[[], None]]] = [
            (0.15, self.restart_database), (0.16, self.ask_for_nobody), (0.17, self.nearly_fill_media),
            (0.45, self.fill_media), (0.62, self.cancel_nobodys), (0.64, self.clear_media),
            (0.65, self.kill_admin), (0.67, self.restart_database), (0.71, self.kill_database),
        ]  # fmt: skip
        self._actions: list[tuple[Callable[[], None], int]] = [
            (self.kill, 8), (self.restart, 3), (self.scale, 4), (self.cut_network, 3), (self.cut_connections, 2),
        ]  # fmt: skip

    def planned(self, share: float) -> None:
        """What is due at this share of the time."""
        while self._plan and self._plan[0][0] <= share:
            self._do(self._plan.pop(0)[1])

    def step(self) -> None:
        """One thing at random, now and then."""
        if time.monotonic() >= self._next_at:
            (action,) = random.choices([a for a, _ in self._actions], [w for _, w in self._actions])  # noqa: S311
            self._do(action)
            self._next_at = time.monotonic() + random.uniform(2, 9)  # noqa: S311

    def end(self) -> None:
        """Everything is there again, and what ended in error for lack of it is retried."""
        self.planned(1)
        self.is_over = True
        self._scale(2)
        self._stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "admin", *KILLED)
        self.counts["retried"] += int(self._stack.sql(RETRY))

    def kill(self) -> None:
        """All processes of a container, of a busy one where there is one; its restart policy brings it back."""
        living = {container[:12] for service in WORKERS for container in self._stack.containers(service)}
        busy = living.intersection(self._stack.sql(BUSY).split())
        if busy:
            self._kill_container(random.choice(sorted(busy)))  # noqa: S311
        else:
            self._kill(random.choice(KILLED))  # noqa: S311

    def kill_admin(self) -> None:
        self._kill("admin")

    def restart(self) -> None:
        """SIGTERM, as an update of its image does."""
        self._try("restart", "--no-deps", random.choice(KILLED))  # noqa: S311

    def scale(self) -> None:
        self._scale(random.randint(1, MOST_REPLICAS))  # noqa: S311

    def cut_network(self) -> None:
        """A worker loses all of the network for longer than its lease, or shorter."""
        service = random.choice(WORKERS)  # noqa: S311
        container = random.choice(self._stack.containers(service) or [""])  # noqa: S311
        network = f"{self._stack.environ['COMPOSE_PROJECT_NAME']}_backend"
        cut = self._stack.run("docker", "network", "disconnect", network, container, check=False)
        if cut.returncode == 0:  # else it was just on its way to come back from something else
            time.sleep(random.uniform(3, 25))  # noqa: S311
            names = ("--alias", "workers", "--alias", service)
            self._stack.run("docker", "network", "connect", *names, network, container)

    def cut_connections(self) -> None:
        self._stack.sql(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity"
            " where application_name like 'jobbko %' and random() < 0.5"
        )

    def restart_database(self) -> None:
        self._stack.compose("restart", "--no-deps", "db")
        self._stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "db")

    def kill_database(self) -> None:
        self._kill("db")
        self._stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "db")

    def nearly_fill_media(self) -> None:
        """Transcripts still find room."""
        self._in_media(NEARLY_FULL)
        self._begun["DiskNearlyFull"] = time.time()

    def fill_media(self) -> None:
        """To the last byte, so that no transcript can be written; then there is room again, and a person retries.

        What fails meanwhile may be more than half of a short run: no alert has to say so, and one may.
        """
        begun = time.time()
        self._in_media(FULL)
        time.sleep(15)
        self._in_media("rm /media/last")
        ends = time.time() + FAILURES_SECONDS
        self.diary.append(Deed("ManyFailures", "whisper_transcribe", begun, ends, has_to_be_told=False))
        self.counts["retried"] += int(self._stack.sql(RETRY))

    def clear_media(self) -> None:
        self._in_media("rm /media/ballast")
        self.diary.append(Deed("DiskNearlyFull", "media", self._begun["DiskNearlyFull"], time.time()))

    def ask_for_nobody(self) -> None:
        """A job of a type that no worker has."""
        self._nobodys = self._stack.sql(NOBODYS).split()[0]
        self._begun["NoWorker"] = time.time()

    def cancel_nobodys(self) -> None:
        self._stack.jobs("cancel", self._nobodys)
        self.diary.append(Deed("NoWorker", "nobodys", self._begun["NoWorker"], time.time()))

    def _do(self, action: Callable[[], Any]) -> None:
        action()
        self.counts[action.__name__] += 1

    def _scale(self, count: int) -> None:
        replicas = ("--scale", f"whisper={count}", "whisper")
        self._try("up", "--detach", "--no-deps", "--no-recreate", *replicas)

    def _try(self, *arguments: str) -> None:
        """Compose may meet a container that is just being restarted, and gives up: as a person's command would."""
        self._stack.compose(*arguments, check=False)

    def _kill(self, service: str) -> None:
        if containers := self._stack.containers(service):
            self._kill_container(random.choice(containers))  # noqa: S311

    def _kill_container(self, container: str) -> None:
        process: int = self._stack.inspect(container)["State"]["Pid"]
        if process:  # 0 while it is being restarted
            os.kill(process, signal.SIGKILL)

    def _in_media(self, script: str) -> None:
        self._stack.compose("run", "--rm", "--no-deps", "-T", "--entrypoint", "sh", "add", "-c", script)
