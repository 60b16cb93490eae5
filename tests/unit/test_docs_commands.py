"""Each shell command of README.md and docs/ is run by a test, as one table says; `make` and docker know each word."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.databases import ROOT
from tests.docs_commands import Command, all_commands, has_test

pytestmark = pytest.mark.timeout(120)
STACK, OPERATIONS = "tests/e2e/test_stack.py", "tests/e2e/test_stack_operations.py"
JOBS = "tests/queue/test_docs_jobs.py::test_every_command_does_what_it_says"
UP = f"{OPERATIONS}::test_up_again_changes_nothing"
BACKUP = "tests/e2e/test_stack_backup.py::test_a_destroyed_volume_comes_back_from_a_backup"
UPGRADE = "tests/e2e/test_stack_upgrade.py::test_upgrade_under_load_and_back"
SWARM = "tests/deploy/test_stack_file.py::test_a_swarm_reads_what_comes_out"
MODELS = "tests/unit/test_whisper_model.py"
# A pattern that fits whole commands, and the test that runs them, with names and options of its own.
RUN_BY = {
    r"jobs .*|docker compose run --rm (-T )?jobs .*|docker exec .* jobs .*": JOBS,
    r"docker compose up( --(detach|build|wait|no-deps))*( [a-z]+)?|docker compose ps.*": UP,
    r"docker compose up --detach( --no-recreate)? --scale whisper=3": f"{STACK}::test_killed_worker_loses_nothing",
    r"docker compose build|docker compose run --rm --no-deps migrate|make up( SCALE=3)?": UPGRADE,
    r"make (backup|restore)( .*)?|docker volume rm jobbko_pgdata": BACKUP,
    r"docker compose kill --signal HUP prometheus": "tests/e2e/test_stack_alerts.py::test_alert_fires_is_told_and_ends",
    r"docker compose run .* python -m services\.whisper\.model_fetch --name \S+ --folder /from": f"{MODELS}::"
    "test_a_converted_model_is_copied_with_its_digests",
    r"\.venv/bin/python -m services\.whisper\.model_fetch --name base": f"{MODELS}::"
    "test_fetching_what_is_there_needs_no_network_and_no_right_to_write",
    r"docker stack deploy|make stack": SWARM,
    r"python -m services\.admin": "tests/services/test_admin_start.py::"
    "test_it_serves_touches_its_health_file_and_ends_well_when_told_to",
    r"curl .*\$\{?API.*": "tests/services/test_api_doc.py::test_every_example_for_the_shell_does_what_the_page_says",
    r"touch services/words/\S+|sed .*>services/words/Dockerfile|\.venv/bin/python -m pytest .*test_words\.py.*": (
        "tests/deploy/test_adding_a_job_type.py::test_projects_own_rules_take_the_new_type"
    ),
    r"make add .*": f"{STACK}::test_mp3_becomes_a_transcript_beside_the_audio",
    r"make (key|secret)( .*)?": f"{STACK}::test_transcript_is_analyzed_as_soon_as_there_is_a_key",
    r"make (new-password|password|psql)( .*)?": f"{OPERATIONS}::test_password_opens_the_database_for_its_role",
    r"make reset-password": f"{OPERATIONS}::test_down_keeps_the_data_and_lost_secrets_are_told_and_healed",
    r"make demo": "tests/e2e/test_demo.py::test_demo_transcribes_the_sample_shows_the_row_and_leaves_nothing",
    r"make demo MP3=.*": "tests/e2e/test_demo.py::test_demo_in_a_terminal_takes_a_recording_of_ones_own",
    r"make help": "tests/unit/test_project.py::test_make_without_a_target_lists_every_target_with_its_comment",
    r"make sbom": "tests/deploy/test_sbom.py::test_it_is_a_document_of_cyclonedx_with_the_packages_of_this_environment",
}
# Run by no test, and why. Each word of them is looked up below: in a dry run of make, or in what docker says of itself.
LOOKED_UP = {
    r"make (bench-[a-z-]+|soak|test|test-long|venv|lock|freeze)( .*)?": "runs the tests, measures, or makes .venv",
    r"make (down|ps|logs)( .*)?|docker compose( down --volumes| cp whisper:\S+ \.)?": "nothing of ours is in it",
    r"docker (system df|image prune|swarm init|stack ps jobbko|service scale( \S+)?)": "the engine's own",
    r"docker compose (pull db|build --pull)": "asks a registry",
    r"docker run --rm --gpus all \S+ nvidia-smi": "needs a GPU",
    r"curl -X POST https://HOST/v1/identity": "a server of somebody else",
}
OURS = ("jobs", "model", "migrate", "container")  # what is run, by the name of its service or in an exec
COMMANDS = [command for command in all_commands() if not command.page.startswith("docs/decisions/")]
MAKE = sorted({command.text for command in COMMANDS if command.text.startswith("make ")})
DOCKER = sorted({command.text for command in COMMANDS if command.text.startswith("docker ")})


@functools.cache
def fitting(text: str) -> list[str]:
    return [pattern for pattern in (*RUN_BY, *LOOKED_UP) if re.fullmatch(pattern, text)]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_command_is_run_by_a_test(command: Command) -> None:
    assert len(fitting(command.text)) == 1, f"give {command.text!r} one row in a table of this file"


@pytest.mark.parametrize("pattern", [*RUN_BY, *LOOKED_UP])
def test_row_is_needed(pattern: str) -> None:
    assert any(pattern in fitting(command.text) for command in COMMANDS)


@pytest.mark.parametrize("test", sorted(set(RUN_BY.values())))
def test_test_is_there(test: str) -> None:
    assert has_test(test)


@pytest.mark.parametrize("command", MAKE)
def test_make_knows_the_target_and_its_variables(command: str, tmp_path: Path) -> None:
    """A dry run: every target is there, all of its recipe can be read, and nothing of it is done."""
    words = [word.replace("…", "name") for word in Command("", command).words]
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/done\n')
    (tmp_path / "docker").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    dry = subprocess.run(
        [*words[:1], "-n", *words[1:]], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=30
    )
    assert dry.returncode == 0, dry.stderr
    assert not (tmp_path / "done").exists(), "make does lines with $(MAKE) in a dry run, too"
    makefiles = (ROOT / "Makefile").read_text() + (ROOT / "containers.mk").read_text()
    for variable in (word.partition("=")[0] for word in words if "=" in word):
        assert re.search(rf"(\$[({{]|\$\$\{{?|\(call given,){variable}\b", makefiles), variable


@pytest.mark.skipif(shutil.which("docker") is None, reason="the client of docker tells which options there are")
@pytest.mark.parametrize("command", DOCKER)
def test_docker_knows_the_command_and_its_options(command: str) -> None:
    words = Command("", re.sub(r"\$\(.*\)", "container", command)).words
    depth = 3 if words[1] in ("compose", "service", "stack", "swarm", "system", "image", "volume") else 2
    told = help_of(tuple(words[:depth]))
    for option in (word for word in words[depth : own_words(words)] if word.startswith("-")):
        assert re.search(rf"(^|[\s,]){re.escape(option)}[\s,]", told), f"{words[:depth]} has no {option}"


def own_words(words: list[str]) -> int:
    """How many words are docker's own: those behind the service or image of a run are the program's."""
    if words[1] == "run" or words[1:3] == ["compose", "run"] or words[1] == "exec":
        named = (place for place, word in enumerate(words) if word in OURS or ":" in word)
        return next((place for place in named if words[place - 1] != "-v"), len(words))
    return len(words)


@functools.cache
def help_of(words: tuple[str, ...]) -> str:
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    told = subprocess.run([*words, "--help"], env=environ, capture_output=True, text=True, timeout=30)
    assert told.returncode == 0, told.stderr
    return told.stdout
