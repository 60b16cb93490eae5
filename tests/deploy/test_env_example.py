""".env.example names exactly what can be set, with the defaults that hold."""

import re
from dataclasses import MISSING
from itertools import pairwise

from tests.databases import ROOT
from tests.deploy.stack import code_settings, interpolated, passed_on

LINE = re.compile(r"#([A-Z][A-Z_]*)=(.*)")
EXAMPLE = dict(
    match.groups() for line in (ROOT / ".env.example").read_text().splitlines() if (match := LINE.fullmatch(line))
)

# Settings that an operator of the stack does not choose, each with the reason.
FIXED = {
    "DATABASE_URL": "wired in compose.yaml",
    "DATABASE_PASSWORD": "made by `secrets`",
    "MIGRATE_DATABASE_URL": "for hosts that have both addresses",
    "MIGRATE_WAIT_SECONDS": "Compose waits until the database is healthy",
    "INIT_FOLDER": "lies in the image",
    "SERVICES_FOLDER": "lies in the image",
    "SECRETS_FOLDER": "a mount of compose.yaml",
    "MEDIA_ROOT": "a mount of compose.yaml",
    "OUTPUT_ROOT": "a mount of compose.yaml",
    "MODEL_ROOT": "a mount of compose.yaml",
    "STATS_LOG_ROOT": "a mount of compose.yaml",
    "POOLER": "the stack has none",
    "METRICS_HOST": "inside the container",
    "METRICS_PORT": "Prometheus looks there",
    "HEALTH_FILE": "the health check looks there",
    "ADMIN_HOST": "inside the container",
    "ADMIN_PORT": "inside the container; the same name in .env is the published port",
    "ADMIN_PASSWORD": "made by `secrets`",
    **dict.fromkeys(
        (
            "DELIVERY_WEBHOOK_URL",
            "DELIVERY_WEBHOOK_SECRET",
            "DELIVERY_WEBHOOK_OLD_SECRET",
            "DELIVERY_SPACETIMEDB_URL",
            "DELIVERY_SPACETIMEDB_TOKEN",
            "ALERT_WEBHOOK_URL",
            "ALERT_WEBHOOK_SECRET",
            "ALERT_SMTP_PASSWORD",
        ),
        "given with `make secret`",
    ),
    "OPENROUTER_API_KEY": "given with `make key`",
}


def test_every_variable_of_the_example_does_something() -> None:
    assert EXAMPLE.keys() == interpolated().keys() | passed_on()


def test_every_setting_of_the_code_can_be_set_or_is_fixed_for_a_reason() -> None:
    assert passed_on() <= code_settings().keys(), "compose.yaml passes on what nobody reads"
    assert code_settings().keys() == passed_on() | FIXED.keys()


def test_the_example_shows_the_defaults_that_hold() -> None:
    for name, default in interpolated().items():
        assert EXAMPLE[name] == default, name
    for name, default in code_settings().items():
        if name in EXAMPLE:
            assert default is not MISSING
            assert EXAMPLE[name].lower() == ("" if default is None else str(default).lower()), name


def test_every_variable_is_explained_and_nothing_is_set() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    for before, line in pairwise(lines):
        assert not line or line.startswith("#")
        if LINE.fullmatch(line):
            assert before.startswith("#"), line


def test_no_secret_is_asked_for() -> None:
    assert not {name for name in EXAMPLE if {"PASSWORD", "SECRET", "KEY", "TOKEN"} & set(name.split("_"))}
