"""The peer benchmark's own runner with this queue as one more system.

After each drain of ours every job is looked for: its result and its three events have to be there.
"""

import sys
from pathlib import Path
from typing import Any

import psycopg
import run  # type: ignore[import-not-found]  # of the benchmark, which is no package

OURS = "jobbko"
DRIVER = Path(__file__).with_name("queue_driver.py")
KEPT = """
select count(*) from job_queue as job
 where status = 'completed' and result ? 'i'
   and (select array_agg(new_status::text order by id) from job_event where job_id = job.id)
       = array['pending', 'running', 'completed']
"""

drain = run.drain


def drain_and_look(system: Any, *arguments: Any) -> dict[str, Any]:
    """A drain of the benchmark; of ours, with the number of jobs that kept everything."""
    cell: dict[str, Any] = drain(system, *arguments)
    if system.name == OURS:
        with psycopg.connect(system.pg.dsn(system.db)) as conn:
            row = conn.execute(KEPT).fetchone()
        cell["kept"] = row[0] if row else 0
        if cell["all"] and cell["kept"] != cell["done"]:
            raise RuntimeError(f"{cell['done']} jobs were done, {cell['kept']} have their result and three events")
    return cell


if __name__ == "__main__":
    run.SYSTEMS[OURS] = ([sys.executable], str(DRIVER), "")
    run.drain = drain_and_look
    run.main()
