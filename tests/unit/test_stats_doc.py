"""docs/statistics.md says what the code does: rules, settings, commands, files, figures, job classes."""

import dataclasses
import re

import pytest

from services.stats import cli, columns, parsing
from services.stats.cli import stats
from services.stats.settings import StatsSettings
from tests.databases import ROOT

PAGE = (ROOT / "docs" / "statistics.md").read_text()
FILES = [*(ROOT / "services" / "stats").iterdir(), *(ROOT / "db" / "init").glob("001[45]*")]
CODE = {path: path.read_text() for path in FILES if path.suffix in (".py", ".sql", ".toml")}


def rules(text: str) -> set[int]:
    """R7 and R17 to R19."""
    spans = [range(int(first), int(last) + 1) for first, last in re.findall(r"R(\d+) to R(\d+)", text)]
    return {int(number) for number in re.findall(r"\bR(\d+)\b", text)}.union(*spans)


def test_every_rule_is_on_the_page_in_the_code_and_in_the_name_of_a_test() -> None:
    tests = "\n".join(path.read_text() for path in ROOT.glob("tests/*/test_stats_*.py"))

    assert rules(PAGE) == set(range(1, 37))
    assert rules("\n".join(CODE.values())) == rules(PAGE)
    assert {int(number) for number in re.findall(r"\bdef test_r(\d+)_", tests)} == rules(PAGE)


def test_every_setting_is_told_with_its_default() -> None:
    rows = {name: line for line in PAGE.splitlines() if line.startswith("| `")
            for name in re.findall(r"`((?:STATS|MEDIA)_[A-Z_]+)`", line.split("|")[1])}  # fmt: skip
    fields = {field.metadata["env"]: field for field in dataclasses.fields(StatsSettings)}

    assert rows.keys() == fields.keys()
    for name, field in fields.items():
        default = "none" if field.default is None else str(field.default).lower()
        assert default in rows[name].rpartition("|")[0].rpartition("|")[2].lower(), name


def test_every_command_is_told_and_every_told_command_is_there() -> None:
    told = set(re.findall(r"jobs stats ([a-z]+)", PAGE)) | {"devices", "countries", "referrers"}

    assert told == set(stats.commands)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z0-9_]+\.(?:py|sql|toml))`", PAGE))))
def test_every_file_is_there(name: str) -> None:
    assert any(path.name == name for path in CODE)


def test_every_class_and_warning_of_the_page_is_one_of_the_codes() -> None:
    table = PAGE[PAGE.index("| what the job says") : PAGE.index("## Count days again")]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    told = [word for first in firsts for word in re.findall(r"`([a-z0-9_]+)`", first)]

    assert len(told) >= 10
    for word in told:
        assert any(f'"{word}"' in text for text in CODE.values()), word


@pytest.mark.parametrize(
    ("value", "known", "told"),
    [
        (cli._LEAST_IN_PUBLIC, 5, "`--public` leaves out rows under 5"),
        (columns.HASH_BYTES, 8, "BLAKE2b, 8 bytes each"),
        (parsing._TOLERATED_BAD_SHARE, 0.05, "more than 5 % of a batch"),
        (parsing._TOLERATED_BAD_LINES, 100, "and 100 lines, are no JSON"),
    ],
)
def test_figures_are_the_ones_of_the_code(value: float, known: float, told: str) -> None:
    assert value == known
    assert told in " ".join(PAGE.split())
