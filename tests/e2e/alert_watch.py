"""The running stack with alerts that wait a two-hundredth of their time, and the people whom they reach."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from demo.embedded_postgres import free_port
from tests.databases import ROOT
from tests.deploy.stack import seconds
from tests.e2e.by_hand import give
from tests.e2e.running_stack import RunningStack
from tests.services.alert_receivers import SECRET, Mails, Posts
from tests.waiting import wait_until

SHIPPED = ROOT / "services" / "prometheus"
FASTER = 200  # three hours are less than the two minutes after which a hung engine is killed
DURATION = re.compile(r"(?<=\[)\d+[smh](?=\])")
SECONDS = re.compile(r"(?<=_seconds > )\d+")
LOOKS = "1s"  # between two scrapes, two evaluations, two looks for who is there


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((SHIPPED / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def shortened(duration: str) -> str:
    return f"{seconds(duration) * 1000 // FASTER}ms"


def write_quick_rules(folder: Path, disk_share: float) -> None:
    """A copy of the shipped folder: waiting times, windows and limits of seconds a two-hundredth, all else as it is.

    But for the disk, which this machine's may well be: its limit lies at `disk_share`.
    """
    content = yaml.safe_load((SHIPPED / "rules.yml").read_text())
    for rule in (rule for group in content["groups"] for rule in group["rules"]):
        quick = SECONDS.sub(lambda found: f"{int(found[0]) / FASTER:g}", rule["expr"])
        rule["expr"] = DURATION.sub(lambda found: shortened(found[0]), quick)
        if "for" in rule:
            rule["for"] = shortened(rule["for"])
        if rule.get("alert") == "DiskNearlyFull":
            rule["expr"] = re.sub(r"< 0\.1$", f"< {disk_share:.6f}", rule["expr"])
    (folder / "rules.yml").write_text(yaml.safe_dump(content))
    config = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": LOOKS, "scrape_timeout": LOOKS, "evaluation_interval": LOOKS}
    for user in [*config["scrape_configs"], *config["alerting"]["alertmanagers"]]:
        for discovery in user.get("dns_sd_configs", []):
            discovery["refresh_interval"] = LOOKS
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))


class AlertWatch:
    """What Prometheus finds, and what arrives of it."""

    def __init__(self, stack: RunningStack, folder: Path, posts: Posts, mails: Mails) -> None:
        self.stack, self.folder, self.posts, self.mails = stack, folder, posts, mails

    def firing(self, name: str, labels: dict[str, str]) -> bool:
        chosen = "".join(f', {label}="{value}"' for label, value in labels.items())
        return bool(self.stack.prometheus(f'ALERTS{{alertstate="firing", alertname="{name}"{chosen}}}'))

    def told(self, name: str, labels: dict[str, str], *, since: int) -> list[dict[str, Any]]:
        """The messages about this alert that came after the first `since` ones."""
        return [
            document
            for document in self.posts.taken[since:]
            if document["data"]["name"] == name and labels.items() <= document["data"]["labels"].items()
        ]

    def wait_until_it_fires(self, name: str, labels: dict[str, str], *, since: int) -> None:
        """In Prometheus, and with whom it is told to."""
        wait_until(lambda: self.firing(name, labels), 240, every=0.5, what=f"{name} to fire")
        wait_until(lambda: self.told(name, labels, since=since), 30, what=f"the message that {name} fires")
        wait_until(lambda: self.mailed(f"{name}, since"), 30, what=f"the mail that {name} fires")

    def wait_until_it_is_over(self, name: str, labels: dict[str, str], *, since: int) -> None:
        wait_until(lambda: not self.firing(name, labels), 240, every=0.5, what=f"{name} to be over")
        wait_until(
            lambda: not self.told(name, labels, since=since)[-1]["data"]["is_firing"],
            30,
            what=f"the message that {name} is over",
        )

    def mailed(self, words: str) -> bool:
        return any(words in mail for mail in self.mails.taken)

    def free_share(self) -> float:
        """Of the disk with the volumes, as the alert has it."""
        (found,) = self.stack.prometheus('jobqueue_disk_free_bytes{disk="volumes"} / jobqueue_disk_size_bytes')
        return float(found["value"][1])

    def move_disk_limit(self, share: float) -> None:
        before = self._read_at()
        write_quick_rules(self.folder, share)
        self.stack.compose("kill", "--signal", "HUP", "prometheus")
        wait_until(lambda: self._read_at() != before, 30, every=0.2, what="Prometheus to read its settings anew")
        self.wait_for_a_listener()

    def wait_for_a_listener(self) -> None:
        """Until Prometheus knows who takes alerts now: after a reload nobody for some seconds, after a restart the old
        address. What fires meanwhile is told a minute later."""
        (delivery,) = self.stack.containers("delivery")
        networks = self.stack.inspect(delivery)["NetworkSettings"]["Networks"].values()
        addresses = {network["IPAddress"] for network in networks}
        wait_until(lambda: self._listeners() and self._listeners() <= addresses, 30, every=0.2, what="a listener")

    def _listeners(self) -> set[str]:
        url = f"http://127.0.0.1:{self.stack.prometheus_port}/api/v1/alertmanagers"
        known = json.loads(self.stack.run("curl", "-sS", "--fail", url).stdout)["data"]["activeAlertmanagers"]
        return {urlsplit(one["url"]).hostname or "" for one in known}

    def _read_at(self) -> list[str]:
        found = self.stack.prometheus("prometheus_config_last_reload_success_timestamp_seconds")
        return [one["value"][1] for one in found]


@contextmanager
def watched(stack: RunningStack, folder: Path) -> Iterator[AlertWatch]:
    """Alerts quick, told by webhook and by mail to this machine; afterwards the stack has what it is shipped with."""
    write_quick_rules(folder, disk_share=0)
    folder.chmod(0o755)  # Prometheus runs as another user
    host = stack.host_address("egress")
    posts, mails = Posts(host), Mails(free_port(), host)
    settings = {
        "PROMETHEUS_DIR": str(folder), "ALERT_MAIL_TO": "vakt@example.no", "ALERT_MAIL_FROM": "jobbko@example.no",
        "ALERT_SMTP_HOST": host, "ALERT_SMTP_PORT": str(mails.port), "ALERT_SMTP_SECURITY": "none",
        "DELIVERY_RETRY_SECONDS": "1",
    }  # fmt: skip
    stack.environ |= settings
    try:
        give(stack, alert_webhook_url=posts.url, alert_webhook_secret=SECRET)
        restart(stack)
        # A counter that rises before it was looked at for the first time has not risen.
        looked = 'min(count_over_time(up{job=~"workers|admin"}[5s])) >= 3'
        wait_until(lambda: stack.prometheus(looked), 60, every=0.5, what="three looks at every process")
        watch = AlertWatch(stack, folder, posts, mails)
        watch.wait_for_a_listener()
        yield watch
    finally:
        for name in settings:
            del stack.environ[name]
        give(stack, alert_webhook_url="", alert_webhook_secret="")
        restart(stack)
        posts.close()
        mails.close()


def restart(stack: RunningStack) -> None:
    stack.compose("up", "--detach", "--no-deps", "--force-recreate", "--wait", "delivery", "prometheus")
