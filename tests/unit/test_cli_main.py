"""The command line as a whole, without a database: help, usage, exit codes, services' commands, completion."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from sidelinja_jobs import cli
from sidelinja_jobs.cli import discovery
from sidelinja_jobs.cli.exits import MEANINGS, ExitCode

ROOT = Path(__file__).parents[2]
NOWHERE = "postgresql://jobbko_operator@127.0.0.1:1/jobbko"


@pytest.fixture(autouse=True)
def _no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "DATABASE_URL_FILE", "DATABASE_PASSWORD", "DATABASE_PASSWORD_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_help_lists_every_exit_code_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0

    shown = capsys.readouterr().out
    for code in ExitCode:
        assert f"  {code.value:<4} {MEANINGS[code]}" in shown


def test_every_command_and_option_says_what_it_does() -> None:
    context = click.Context(cli.jobs)
    for name in cli.jobs.list_commands(context):
        command = cli.jobs.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(200), name
        assert not command.get_short_help_str().endswith("..."), name


def test_every_command_and_option_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for name, command in cli.jobs.commands.items():
        assert f"`jobs {name}" in page, name
        for option in command.params:
            for flag in option.opts:
                assert not flag.startswith("--") or f"`{flag}" in page or f" {flag}" in page, f"{name} {flag}"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["frob"], "No such command 'frob'. Next: jobs --help"),
        (["enqueue"], "Missing argument 'TYPE'. Next: jobs enqueue --help"),
        (["enqueue", "t", "--priority", "40000"], "40000 is not in the range -32768<=x<=32767. Next: jobs"),
        (["enqueue", "t", "--priority", "høy"], "'høy' is not a valid integer range. Next: jobs enqueue --help"),
        (["enqueue", "t", "a=1", "--payload", "{}"], "given in more than one way"),
        (["enqueue", "t", "--at", "18:00", "--in", "1h"], "--at and --in are both given"),
        (["enqueue", "t", "--payload-file", "/nowhere/x"], "/nowhere/x cannot be read: No such file or directory"),
        (["list", "--status", "borte"], "'borte' is not one of"),
        (["pause", "t"], "Missing option '--reason'"),
        (["retry"], "it is not said which jobs. Next: give IDs, or --all-errors"),
        (["retry", "--all-errors", "abcdef12"], "it is not said which jobs"),
        (["watch", "abcdef12", "--type", "t"], "use one of them"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert cli.main(arguments) == ExitCode.REFUSED

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("jobs: ")
    assert told in lines[0]


def test_alone_it_shows_its_help_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == ExitCode.REFUSED
    assert "Exit codes:" in capsys.readouterr().err


def test_missing_settings_say_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == ExitCode.SETUP
    assert "DATABASE_URL is not set; set it to postgresql://" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["rubbish://ola:hemmelig@x", "postgresql://ola:hemm elig@x:port/y"])
def test_bad_address_is_told_without_its_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    assert cli.main(["list"]) == ExitCode.SETUP
    told = capsys.readouterr().err
    assert "DATABASE_URL" in told
    assert "elig" not in told


def test_database_that_is_away_is_code_69(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", NOWHERE)

    assert cli.main(["list"]) == ExitCode.UNREACHABLE
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "127.0.0.1:1 cannot be reached" in told


def test_fault_of_its_own_is_code_70_with_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidelinja_jobs.cli.listing.open_database", lambda: 1 / 0)

    assert cli.main(["list"]) == ExitCode.INTERNAL
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_commands_of_services_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = tmp_path / "services" / "clipper"
    service.mkdir(parents=True)
    (service / "cli.py").write_text(
        "import click\n@click.command('clip')\ndef clip():\n    'Clip.'\n    click.echo('klipt')\ncommands = [clip]\n"
    )
    broken = tmp_path / "services" / "broken"
    broken.mkdir()
    (broken / "cli.py").write_text("import a_package_of_another_image\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name == "services" or name.startswith("services.")]:
        monkeypatch.delitem(sys.modules, name)
    try:
        found = discovery.service_commands()
        code = cli.main(["clip"])
    finally:
        for name in [name for name in sys.modules if name == "services" or name.startswith("services.")]:
            del sys.modules[name]

    assert found.keys() == {
        "account",
        "clip",
        "deliveries",
        "transcribe",
        "retranscribe",
        "shows",
        "stats",
        "token",
    }  # those of here, too
    assert code == 0
    printed = capsys.readouterr()
    assert printed.out == "klipt\n"
    assert "services.broken.cli are not available here" in printed.err


def test_own_commands_look_for_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "service_commands", lambda: pytest.fail("looked for services"))

    assert cli.main(["list", "--help"]) == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert cli.main(["completion", shell]) == 0
    assert f"_JOBS_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "position", "offered"), [("jobs en", "1", "plain,enqueue"), ("jobs list --st", "2", "plain,--status")]
)
def test_shell_is_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, position: str, offered: str
) -> None:
    monkeypatch.setenv("_JOBS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", position)

    assert cli.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [offered]


def test_completion_of_names_without_a_database_is_silent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_JOBS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "jobs enqueue wh")
    monkeypatch.setenv("COMP_CWORD", "2")

    cli.main([])

    printed = capsys.readouterr()
    assert (printed.out + printed.err).strip() == ""


@pytest.mark.parametrize("fault", [ImportError("not here"), ZeroDivisionError("broken")])
def test_a_service_that_cannot_be_read_leaves_no_word_in_a_completion(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(_name: str) -> None:
        raise fault

    monkeypatch.setattr(discovery, "_module_names", lambda: ["services.broken.cli"])
    monkeypatch.setattr(discovery.importlib, "import_module", broken)
    monkeypatch.setenv("_JOBS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "jobs en")
    monkeypatch.setenv("COMP_CWORD", "1")

    cli.main([])

    assert capsys.readouterr().err == ""


def test_script_runs_from_any_folder(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "shared" / "jobs"), "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Usage: jobs")
