"""What the targets of containers.mk ask of docker, and what they do when it fails: with a program in its place."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.databases import ROOT

# Notes what it is asked, answers what the files beside it hold, and fails a backup where there is the file `fails`.
DOCKER = """#!/bin/bash
echo "$*" >>"$0.asked"
case "$*" in
  *"show nobody"*) echo 'no such role' >&2; exit 2 ;;
  *" show "*) echo secret ;;
  *" give "*) cat >"$0.given" ;;
  *working_dir*) cat "$0.folders" ;;
  *"{{.State}}"*) cat "$0.states" ;;
  *" up "*" --wait"*) [[ ! -e "$0.fails" ]] ;;
  *"ps --services"*) printf '%s\\n' admin db delivery openrouter research whisper watch ;;
  *" backup "*) cat "$0.dump"; [[ ! -e "$0.fails" ]] ;;
esac
"""


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER)
    program.chmod(0o755)
    program.with_suffix(".folders").write_text("")
    program.with_suffix(".dump").write_bytes(b'{"job_queue" : 3}\nPGDMP\0\xff\n')
    return program


def make(docker: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": f"{docker.parent}:{os.environ['PATH']}", "HOME": str(docker.parent)}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environ, input=stdin, capture_output=True, text=True, timeout=30
    )


def asked(docker: Path) -> list[str]:
    log = docker.with_suffix(".asked")
    return log.read_text().splitlines() if log.exists() else []


def test_a_stack_that_runs_from_another_folder_is_left_alone(docker: Path, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(ROOT)
    docker.with_suffix(".folders").write_text(f"{tmp_path / 'here'}\n")
    assert make(docker, "up").returncode == 0

    docker.with_suffix(".asked").unlink()
    docker.with_suffix(".folders").write_text(f"/srv/production\n{ROOT}\n")
    refused = make(docker, "up")

    assert refused.returncode != 0
    assert "the stack of this name runs from /srv/production. Next: make down" in refused.stderr
    assert len(asked(docker)) == 1


def test_a_start_that_fails_shows_the_logs_of_who_is_not_well_alone(docker: Path) -> None:
    docker.with_suffix(".states").write_text(
        "db running healthy 0\nmigrate exited  0\nmodel exited  1\nwhisper restarting  78\nwhisper created  0\n"
        "watch running starting 0\nprometheus running unhealthy 0\n"
    )
    docker.with_suffix(".fails").touch()
    failed = make(docker, "up")

    assert failed.returncode != 0
    assert any("--wait --wait-timeout " in line for line in asked(docker)), "who restarts for ever is not waited for"
    assert [line for line in asked(docker) if " logs " in line] == [
        "compose logs --tail 3 model prometheus watch whisper"
    ]
    assert 'Next: "When the first start fails" in docs/operations.md' in failed.stderr


def test_a_role_that_is_none_is_told_and_asked_for_no_password(docker: Path) -> None:
    refused = make(docker, "psql", "ROLE=nobody", "SQL=select 1")

    assert "no such role" in refused.stderr
    assert not any("psql" in line for line in asked(docker))


@pytest.mark.parametrize(
    ("role", "restarted"),
    [
        ("worker_whisper", "whisper watch"), ("jobbko_delivery", "delivery"), ("jobbko_admin", "admin"),
        ("admin", "admin"), ("worker_stats", ""), ("jobbko_operator", ""), ("jobbko_reader", ""),
    ],
)  # fmt: skip
def test_a_new_password_restarts_who_uses_it_and_runs(docker: Path, role: str, restarted: str) -> None:
    assert make(docker, "new-password", f"ROLE={role}").returncode == 0

    assert restarts(docker) == ([restarted] if restarted else [])


def restarts(docker: Path) -> list[str]:
    return [line.partition("--no-deps ")[2] for line in asked(docker) if " restart " in line]


@pytest.mark.parametrize(
    ("words", "restarted"),
    [(["key"], "openrouter research"), (["secret", "NAME=alert_smtp_password"], "delivery")],
)
def test_a_secret_goes_by_standard_input_and_restarts_who_reads_it(
    docker: Path, words: list[str], restarted: str
) -> None:
    assert make(docker, *words, stdin="sk-or-v1-kept\n").returncode == 0

    assert restarts(docker) == [restarted]
    assert docker.with_suffix(".given").read_text() == "sk-or-v1-kept\n"
    assert "kept" not in "".join(asked(docker)), "an argument is seen by everybody"


def test_a_backup_is_a_dump_and_its_rows(docker: Path, tmp_path: Path) -> None:
    told = make(docker, "backup", f"TO={tmp_path / 'sikker kopi'}")
    (dump,) = (tmp_path / "sikker kopi").glob("*.dump")

    assert dump.read_bytes() == b"PGDMP\0\xff\n"
    assert dump.with_suffix(".rows").read_text() == '{"job_queue" : 3}\n'
    assert f"backup: {dump}" in told.stdout
    assert {path.stat().st_mode & 0o777 for path in dump.parent.iterdir()} == {0o600}, "all that is known stands in it"
    assert len(list(dump.parent.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b'{"job_queue" : 3}\nPGDMP'], ids=["nothing", "half of it"])
def test_a_backup_that_fails_leaves_nothing_and_says_what_to_look_at(
    docker: Path, tmp_path: Path, content: bytes
) -> None:
    docker.with_suffix(".dump").write_bytes(content)
    docker.with_suffix(".fails").touch()
    failed = make(docker, "backup", f"TO={tmp_path / 'to'}")

    assert failed.returncode != 0
    assert f"backup: none was made in {tmp_path / 'to'}, see above. Next: is db healthy (make ps)?" in failed.stderr
    assert list((tmp_path / "to").iterdir()) == []


@pytest.mark.parametrize(
    ("given", "name"),
    [("", "Episode én.mp3"), ("2026/høst/", "2026/høst/Episode én.mp3"), ("2026/12.mp3", "2026/12.mp3")],
)
def test_a_file_is_added_under_its_name_or_another_or_in_a_folder(
    docker: Path, tmp_path: Path, given: str, name: str
) -> None:
    (tmp_path / "Episode én.mp3").touch()
    assert make(docker, "add", f"FILE={tmp_path / 'Episode én.mp3'}", f"AS={given}").returncode == 0

    assert asked(docker) == [f"compose run --rm --no-deps -T add -- {name}"]
