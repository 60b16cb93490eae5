"""The service `secrets`: what it makes, and that it never changes what is there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.admin import secrets
from sidelinja_jobs.logins import read_passwords
from tests.databases import ROOT
from tests.deploy.stack import JOB_TYPES

KEYS = {f"{job_type.role}/{name}" for job_type in JOB_TYPES.values() for name in job_type.operator_secrets} | {
    f"delivery/{name}" for name in secrets.DELIVERY_SECRETS
}
COMMAND = [sys.executable, "-m", "services.admin.secrets", "--volume"]


def run(volume: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(secrets.main, ["--volume", str(volume), *arguments])
    return result.exit_code, result.output


def contents(volume: Path) -> dict[str, str]:
    return {str(path.relative_to(volume)): path.read_text() for path in volume.rglob("*") if path.is_file()}


def test_first_start_makes_a_secret_for_every_login(tmp_path: Path) -> None:
    code, told = run(tmp_path)
    made = contents(tmp_path)

    assert code == 0
    assert made.keys() == {
        "db/superuser", "operator/password", "producer/password", "plain/password", "metrics/password",
        "reader/password", "admin/password", "admin/admin_password", "delivery/password",
        *(f"{job_type.role}/password" for job_type in JOB_TYPES.values()),
        *KEYS,
    }  # fmt: skip
    assert {made.pop(key) for key in KEYS} == {""}, "until `make key` or `make secret`"
    assert all(re.fullmatch(r"[A-Za-z0-9]{32}", secret) for secret in made.values()), (
        "no $ for Compose, no - for a shell"
    )
    assert len(set(made.values())) == len(made)
    assert not any(secret in told for secret in made.values())
    assert f"made {len(made)} of {len(made)}" in told


def test_every_user_can_read_a_file_and_nobody_write_it(tmp_path: Path) -> None:
    """The database rereads its own as its own user; a mount's subpath keeps the others out."""
    run(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {0o444}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_dir()} == {0o755}


def test_migrate_finds_the_passwords_where_secrets_puts_them(tmp_path: Path) -> None:
    run(tmp_path)
    passwords = read_passwords(tmp_path, JOB_TYPES.values())
    assert passwords == {role: run(tmp_path, "show", role)[1].strip() for role in passwords}


def test_a_later_start_adds_what_is_missing_and_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "worker_whisper" / "password").unlink()
    (tmp_path / "worker_whisper").rmdir()
    code, told = run(tmp_path)
    after = contents(tmp_path)

    assert (code, told) == (0, f"secrets: made 1 of {len(before.keys() - KEYS)} (worker_whisper)\n")
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} == {"worker_whisper/password"}
    assert "all there" in run(tmp_path)[1]


def test_several_at_once_agree(tmp_path: Path) -> None:
    environ = {"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}", "PATH": os.environ["PATH"]}
    running = [subprocess.Popen([*COMMAND, str(tmp_path)], env=environ, stdout=subprocess.PIPE) for _ in range(4)]
    told = [process.communicate(timeout=30)[0].decode() for process in running]

    assert [process.returncode for process in running] == [0] * 4
    assert sum(int(re.findall(r"made (\d+)", line)[0]) for line in told) == len(contents(tmp_path).keys() - KEYS)
    assert not list(tmp_path.rglob(".*")), "no draft is left"


def test_a_renewed_secret_is_another_one(tmp_path: Path) -> None:
    run(tmp_path)
    before = contents(tmp_path)
    code, told = run(tmp_path, "renew", "jobbko_operator")
    after = contents(tmp_path)

    assert (code, told) == (0, "secrets: renewed jobbko_operator\n")
    assert {name for name in before if before[name] != after[name]} == {"operator/password"}


def test_show_prints_the_password_alone(tmp_path: Path) -> None:
    run(tmp_path)
    assert run(tmp_path, "show") == (0, (tmp_path / "operator" / "password").read_text() + "\n")
    assert run(tmp_path, "show", "postgres")[1].strip() == (tmp_path / "db" / "superuser").read_text()


def services_that_read_a_key(folder: Path) -> Path:
    for name, wants in (("a", True), ("b", True), ("c", False)):
        (folder / name).mkdir(parents=True)
        line = 'operator_secrets = ["provider_key"]\n' if wants else ""
        (folder / name / "job_type.toml").write_text(f'name = "{name}"\nrole = "worker_{name}"\n{line}')
    return folder


def test_what_an_operator_gives_is_an_empty_file_for_each_reader_until_then(tmp_path: Path) -> None:
    services, volume = services_that_read_a_key(tmp_path / "services"), tmp_path / "volume"
    files = secrets.operator_files(services)
    assert files["provider_key"] == [Path("worker_a/provider_key"), Path("worker_b/provider_key")]
    assert files.keys() == {"provider_key", *secrets.DELIVERY_SECRETS}

    made = secrets.fill(volume, {}, files["provider_key"])
    assert (made, contents(volume)) == ([], {"worker_a/provider_key": "", "worker_b/provider_key": ""})

    secrets.give(volume, files["provider_key"], "sk-first")
    secrets.give(volume, files["provider_key"], "sk-second")
    secrets.fill(volume, {}, files["provider_key"])
    assert contents(volume) == {"worker_a/provider_key": "sk-second", "worker_b/provider_key": "sk-second"}
    assert {file.stat().st_mode & 0o777 for file in volume.rglob("provider_key")} == {0o444}
    assert not list(volume.rglob(".*")), "no draft is left"


def give(volume: Path, text: str) -> tuple[int, str]:
    arguments = ["--volume", str(volume), "give", "openrouter_api_key"]
    result = CliRunner().invoke(secrets.main, arguments, input=text)
    return result.exit_code, result.output


def test_a_key_is_stored_as_it_was_copied_and_never_shown(tmp_path: Path) -> None:
    readers = "worker_openrouter, worker_research"
    assert give(tmp_path, " sk-or-v1-abc \n") == (0, f"secrets: openrouter_api_key stored for {readers}\n")
    assert contents(tmp_path)["worker_openrouter/openrouter_api_key"] == "sk-or-v1-abc"

    assert give(tmp_path, "\n") == (0, f"secrets: openrouter_api_key taken away for {readers}\n")
    assert contents(tmp_path)["worker_openrouter/openrouter_api_key"] == ""


@pytest.mark.parametrize("text", ["two words", "sk-\u200bor", "sk-or\nv1", "x" * 1025])
def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    code, told = give(tmp_path, text)

    assert code == 1
    assert text not in told
    assert "Next: copy it again" in told
    assert not contents(tmp_path)


@pytest.mark.parametrize("arguments", [["show", "nobody"], ["renew", "nobody"], ["renew"], ["burn"]])
def test_wrong_use_is_told(tmp_path: Path, arguments: list[str]) -> None:
    assert run(tmp_path, *arguments)[0] == 2
    assert not contents(tmp_path)


def test_a_missing_volume_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, told = run(tmp_path / "file")

    assert code == 1
    assert told.startswith("secrets: ")
    assert f"running as uid {os.getuid()}" in told
    assert told.count("\n") == 1
