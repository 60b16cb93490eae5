"""A backup of the running stack, its volume destroyed, the restore: all rows are back, and the work goes on."""

from pathlib import Path

import pytest

from tests.e2e.running_stack import PROJECT, RunningStack

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

# Every row of every table; but for whom a restore is new: live workers, the applied files' times, the event epoch, and
# numbers of transactions, which are another server's.
DIGESTS = """
select json_object_agg(name, digest order by name) from (
    select oid::regclass::text as name,
           (xpath('/row/digest/text()', query_to_xml(
               format($$select coalesce(md5(string_agg(line, '|' order by line)), '') as digest
                          from (select (to_jsonb(row_)
                                        - array['xid', 'lease_until', 'cursor_xid', 'cursor_id'])::text as line
                                  from %s as row_) as lines$$, oid::regclass), false, true, '')))[1]::text as digest
      from pg_class
     where relkind = 'r' and relnamespace in ('public'::regnamespace, 'stats'::regnamespace)
       and relname not in ('worker', 'schema_migrations', 'event_epoch', 'audit_entry', 'job_type')) as tables
"""


def test_a_destroyed_volume_comes_back_from_a_backup(stack: RunningStack, tmp_path: Path, transcript: str) -> None:
    stack.compose("stop", "whisper")
    finished = stack.sql(
        "select id from job_queue where job_type = 'whisper_transcribe' and status = 'completed' limit 1"
    )
    waiting = stack.enqueue("reference.mp3")  # whose transcript is there
    told = stack.make("backup", f"TO={tmp_path}")
    before = stack.sql(DIGESTS)
    (backup,) = tmp_path.glob("jobbko-*.dump")

    stack.compose("down", "--timeout", "10")
    stack.run("docker", "volume", "rm", f"{PROJECT}_pgdata")
    restored = stack.make("restore", f"FROM={backup}")
    after = stack.sql(DIGESTS)
    again = stack.run("make", "restore", f"FROM={backup}", "COMPOSE=docker compose --env-file /dev/null", check=False)
    stack.up(workers=2)

    assert '"job_queue"' in told
    assert "restore: done" in restored
    assert after == before
    assert again.returncode != 0
    assert "jobs; a backup goes into an empty one" in again.stderr
    assert stack.job(finished)["result"]["text"]
    assert stack.wait_for(waiting, "completed")["result"]["text"] == transcript
