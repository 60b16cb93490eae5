"""Settings: read from the environment or from files, all problems in one message, secrets in none."""

import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import WorkerSettings, load_settings, setting


@dataclass(frozen=True)
class Example:
    url: str = setting("URL", help="set it to postgresql://…")
    password: str | None = setting("PASSWORD", default=None, secret=True)
    key: str | None = setting("KEY", default=None, secret=True, empty_file_is_unset=True)
    pin: int = setting("PIN", default=0, secret=True, minimum=1000, maximum=9999)
    seconds: float = setting("SECONDS", default=1.0, minimum=0.05, maximum=3600)
    price: Decimal = setting("PRICE", default=Decimal("0.1"), minimum=0)
    count: int = setting("COUNT", default=3, minimum=0)
    limit: int | None = setting("LIMIT", default=None, maximum=7)
    is_on: bool = setting("IS_ON", default=True)
    wait: float = setting("WAIT", default=1.0)
    folder: Path = setting("FOLDER", default=Path("/media"))
    level: str = setting("LEVEL", default="info", choices=("debug", "info"))


def load(**environ: str) -> Example:
    return load_settings(Example, {"URL": "x", **environ})


def problem(**environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**environ)
    return str(caught.value)


def test_what_is_not_set_has_its_default() -> None:
    assert load() == Example("x", None, None, 0, 1.0, Decimal("0.1"), 3, None, True, 1.0, Path("/media"), "info")


def test_every_kind_of_value_is_read() -> None:
    read = load(PASSWORD="p w", SECONDS="0.5", COUNT="0", LIMIT="-7", IS_ON="off", FOLDER="/a b/c", LEVEL="debug")

    assert read == Example("x", "p w", None, 0, 0.5, Decimal("0.1"), 0, -7, False, 1.0, Path("/a b/c"), "debug")


def test_an_empty_variable_counts_as_not_set() -> None:
    """Compose passes `FOO: ${FOO:-}` as an empty text."""
    assert load(PASSWORD="", SECONDS="", COUNT="", IS_ON="", FOLDER="", LEVEL="", LIMIT="") == load()
    assert "URL is not set" in problem(URL="")


def test_switches_are_read_in_many_spellings() -> None:
    assert [load(IS_ON=text).is_on for text in ("1", "TRUE", "yes", "On")] == [True] * 4
    assert [load(IS_ON=text).is_on for text in ("0", "false", "No", "OFF")] == [False] * 4


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(Example, {"SECONDS": "soon", "COUNT": "1.5", "IS_ON": "maybe", "LEVEL": "loud", "LIMIT": "x"})

    assert str(caught.value).split("; ") == [
        "settings: URL is not set",
        "set it to postgresql://…",
        "SECONDS is 'soon', expected a number",
        "COUNT is '1.5', expected a whole number",
        "LIMIT is 'x', expected a whole number",
        "IS_ON is 'maybe', expected true or false",
        "LEVEL is 'loud', expected one of debug, info",
    ]


@pytest.mark.parametrize("text", ["NaN", "sNaN", "inf", "-0.01", "a penny"])
def test_an_amount_is_a_finite_number(text: str) -> None:
    assert "PRICE is " in problem(PRICE=text)
    assert load(PRICE="0.30").price == Decimal("0.30")


@pytest.mark.parametrize("text", ["0.04", "3601", "nan", "inf", "-inf", "-1", "1e9"])
def test_a_number_out_of_bounds_is_refused_with_the_bounds(text: str) -> None:
    assert problem(SECONDS=text) == f"settings: SECONDS is {text!r}, expected 0.05 to 3600"


@pytest.mark.parametrize("text", ["-1", "1.5", "0x10", "1_000", "٣", " 3 ", "9" * 5000])
def test_a_whole_number_is_digits(text: str) -> None:
    assert problem(COUNT=text).startswith("settings: COUNT is '")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"COUNT": "-1"}, "COUNT is '-1', expected 0 or more"),
        ({"LIMIT": "8"}, "LIMIT is '8', expected 7 or less"),
        ({"WAIT": "inf"}, "WAIT is 'inf', expected a finite number"),
        ({"PRICE": "inf"}, "PRICE is 'inf', expected 0 or more"),
    ],
)
def test_bounds_that_are_missing_are_not_named(environ: dict[str, str], expected: str) -> None:
    assert problem(**environ).endswith(expected)


def test_a_secret_is_never_shown() -> None:
    for text in ("12", "hunter2"):
        message = problem(PIN=text, COUNT="x")
        assert "PIN is (hidden), expected" in message
        assert text not in message


def test_a_value_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(" pass wørd \n")

    assert load(PASSWORD_FILE=str(file)).password == " pass wørd "
    file.write_text("a\r\n\n")
    assert load(PASSWORD_FILE=str(file)).password == "a"
    file.write_text("7\n")
    assert load(COUNT_FILE=str(file), COUNT="").count == 7


def test_an_empty_file_variable_counts_as_not_set() -> None:
    assert load(PASSWORD="x", PASSWORD_FILE="").password == "x"


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing, folder, empty, binary = (tmp_path / name for name in ("missing", "folder", "empty", "binary"))
    folder.mkdir()
    empty.write_text("\n\n")
    binary.write_bytes(b"\xff\xfe")

    for path in (missing, folder, binary):
        assert re.search(
            rf"PASSWORD_FILE names {path}, which user id \d+ cannot read: ", problem(PASSWORD_FILE=str(path))
        )
    assert problem(PASSWORD_FILE=str(empty)).endswith(f"PASSWORD_FILE names {empty}, which is empty")


def test_the_file_of_what_may_be_given_later_is_empty_until_then(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("\n")
    assert load(KEY_FILE=str(file)).key is None

    file.write_text("given")
    assert load(KEY_FILE=str(file)).key == "given"
    assert "cannot read" in problem(KEY_FILE=str(tmp_path / "missing"))


def test_a_variable_and_its_file_are_not_both_set(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from the file")

    message = problem(PASSWORD="from the variable", PASSWORD_FILE=str(file))

    assert message.endswith("PASSWORD and PASSWORD_FILE are both set; set one of them")
    assert "from the" not in message


def test_the_content_of_a_secret_file_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")

    assert "hunter2" not in problem(PIN_FILE=str(file))


def test_a_worker_needs_nothing_but_its_database() -> None:
    settings = load_settings(WorkerSettings, {"DATABASE_URL": "postgresql://worker_x@db/jobbko"})

    assert (settings.poll_seconds, settings.listen, settings.metrics_port) == (1.0, True, 9100)
    assert settings.health_file == Path("/tmp/healthy")  # noqa: S108
    assert settings.password is None


def test_a_workers_problems_name_every_variable_and_no_secret() -> None:
    environ = {"DATABASE_PASSWORD_FILE": "/nowhere", "POLL_SECONDS": "0", "METRICS_PORT": "70000", "LOG_FORMAT": "xml"}

    with pytest.raises(SettingsError) as caught:
        load_settings(WorkerSettings, environ)

    for name in ("DATABASE_URL", "DATABASE_PASSWORD", "POLL_SECONDS", "METRICS_PORT", "LOG_FORMAT"):
        assert name in str(caught.value)


def test_the_real_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "from the environment")

    assert load_settings(Example).url == "from the environment"
