"""What the first page, schedules, spending and downloads say is what the tables hold, and costs what an index costs."""

import re
from typing import Any

import psycopg
from psycopg.rows import dict_row

from services.admin.database import all_queries
from tests.databases import Database
from tests.services.admin_jobs import failed, said
from tests.services.admin_site import AdminSite, admin_site_with

QUERIES = all_queries()


def types(database: Database, most: int = 10_000, most_errors: int = 1_000) -> dict[str, dict[str, Any]]:
    """The rows of the first page, by type."""
    conn = database.connect("admin", row_factory=dict_row)
    rows = conn.execute(QUERIES["overview_types"], {"most": most, "most_errors": most_errors}).fetchall()
    conn.close()
    return {row["name"]: row for row in rows}


def test_each_type_is_counted_by_status_with_its_oldest_job_that_is_due(database: Database) -> None:
    fill = "insert into job_queue (job_type, payload, status, priority, scheduled_for) values "
    database.rows(
        fill
        + """('test_job', '{}', 'pending', 5, now() - interval '1 hour'),
                  ('test_job', '{}', 'pending', 0, now() - interval '3 hours'),
                  ('test_job', '{}', 'retry', -5, now() - interval '2 hours'),
                  ('test_job', '{}', 'retry', 9, now() + interval '2 hours'),
                  ('test_job', '{}', 'running', 0, now() - interval '9 hours'),
                  ('test_job', '{}', 'completed', 0, now() - interval '9 hours')"""
    )
    row = types(database)["test_job"]
    hours = database.value("select round(extract(epoch from now() - %s) / 3600)::int", row["oldest_due"])

    assert (row["pending"], row["retry"], row["running"], row["errors"], hours) == (2, 2, 1, 0, 3)
    assert not row["is_capped"]


def test_cancelled_jobs_are_no_errors_and_the_newest_failure_is_told(database: Database) -> None:
    database.rows(
        """insert into job_queue (job_type, payload, status, completed_at, error_class, error_msg)
           values ('test_job', '{}', 'error', now() - interval '2 hours', 'crash', 'older'),
                  ('test_job', '{}', 'error', now() - interval '1 hour', 'timeout', 'newest failure'),
                  ('test_job', '{}', 'error', now(), 'cancelled', 'cancelled while waiting')"""
    )
    row = types(database)["test_job"]

    assert (row["errors"], row["newest_class"], row["newest_error"]) == (2, "timeout", "newest failure")


def test_what_is_more_than_a_person_reads_is_not_counted_on(database: Database) -> None:
    database.rows("insert into job_queue (job_type, payload) select 'test_job', '{}' from generate_series(1, 30)")
    database.rows(
        """insert into job_queue (job_type, payload, status, completed_at, error_class)
           select 'other_job', '{}', 'error', now(), 'crash' from generate_series(1, 9)"""
    )
    found = types(database, most=20, most_errors=5)

    assert (found["test_job"]["pending"], found["test_job"]["is_capped"]) == (21, True)
    assert found["other_job"]["errors_capped"]
    assert types(database, most=30)["test_job"]["is_capped"] is False


def test_a_type_that_only_jobs_or_workers_know_is_shown_too(database: Database) -> None:
    database.enqueue("misspelt", {})
    database.enqueue("failed_only", {}, status="error", error_class="x")
    database.rows(
        "insert into worker (worker_id, job_type, role, version, host, pid) values ('w', 'w_only', 'r', 'v', 'h', 1)"
    )
    found = types(database)

    assert [found[name]["is_known"] for name in ("misspelt", "failed_only", "w_only", "test_job")] == [False] * 3 + [
        True
    ]
    assert found["w_only"]["workers"] == 1


def test_no_statement_of_the_first_page_reads_the_table_of_jobs(database: Database) -> None:
    """The complaint behind it: a dashboard that takes 45 seconds once there are a million jobs."""
    database.rows("set session_replication_role = replica")
    database.rows(
        """insert into job_queue (job_type, payload, status, completed_at)
           select 'test_job', '{}', (array['completed', 'completed', 'pending', 'error'])[1 + i % 4]::job_status, now()
             from generate_series(1, 40000) as i"""
    )
    database.rows(
        """insert into job_event (job_id, job_type, new_status, attempts, actor)
           select id, job_type, status, 0, 'x' from job_queue"""
    )
    database.rows("vacuum analyze job_queue")
    database.rows("vacuum analyze job_event")
    conn = psycopg.connect(database.dsn("admin"), autocommit=True, cursor_factory=psycopg.ClientCursor)
    for name in ("overview_types", "overview_running", "workers_list", "schedules_list", "live_running"):
        statement = "explain " + QUERIES[name]
        plan = "\n".join(row[0] for row in conn.execute(statement.encode(), {"most": 100, "most_errors": 100}))
        assert not re.search(r"Seq Scan on job_(queue|event)", plan), f"{name}\n{plan}"
    conn.close()


def test_jobs_that_wait_for_a_worker_who_is_not_there_are_pointed_out(admin_site: AdminSite) -> None:
    warning = "Jobs are waiting and no worker is running"
    assert warning not in admin_site.operator.get("/").text
    admin_site.database.enqueue()
    assert warning in admin_site.operator.get("/").text
    admin_site.database.rows(
        "insert into worker (worker_id, job_type, role, version, host, pid) values ('w', 'test_job', 'r', 'v', 'h', 1)"
    )
    assert warning not in admin_site.operator.get("/").text


def test_workers_are_shown_with_what_they_are_at_and_how_long_it_will_take(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.rows(
        """insert into worker (worker_id, job_type, role, version, host, pid, seen_at)
           select name, 'test_job', 'r', 'v', name, 1, now() - ago
             from (values ('at-work', interval '0'), ('free', interval '1 s'), ('silent', interval '50 s'),
                          ('hanging', interval '0')) as worker (name, ago)"""
    )
    database.rows(
        """insert into job_queue (job_type, payload, status, worker_id, started_at, lease_until, progress)
           values ('test_job', '{}', 'running', 'at-work', now() - interval '10 min', now() + interval '1 min', 0.5),
                  ('test_job', '{}', 'running', 'hanging', now() - interval '1 h', now() - interval '1 min', null)"""
    )
    rows = admin_site.operator.get("/workers").text.split("<tbody")[1].split("</tr>")[:-1]
    told = {name: said(row) for row in rows for name in ("at-work", "free", "silent", "hanging") if name in row}

    assert re.search(r"busy .* 50.% Running … attempt 1/3 about 10.min( \d.s)? left 10.min.* ago", told["at-work"])
    assert "stuck" in told["hanging"]
    assert "left" not in told["hanging"]
    assert "idle" in told["free"]
    assert "gone" in told["silent"]


def test_no_message_and_no_note_tells_a_secret(admin_site: AdminSite) -> None:
    failed(admin_site.database, "login refused: password=hunter2")
    admin_site.database.enqueue(
        status="running", worker_id="w", started_at="2026-11-29 10:00+00", progress_note="at https://me:hunter2@x.no/"
    )
    admin_site.database.rows(
        "insert into worker (worker_id, job_type, role, version, host, pid) values ('w', 'test_job', 'r', 'v', 'h', 1)"
    )
    for path, words in (("/", ("login refused", "at https://me:")), ("/workers", ("at https://me:",))):
        page = admin_site.operator.get(path).text
        assert all(word in page for word in words), path
        assert "hunter2" not in page, path


def test_the_day_is_spent_in_dollars_beside_its_budget(database: Database) -> None:
    database.rows(
        """insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd,
                                 cost_usd, cost_source, day)
           select gen_random_uuid(), 'openrouter_analyze', gen_random_uuid(), 's', md5(i::text) || md5(i::text),
                  'received', 'a/model', 1, 0.75, 'provider', (clock_timestamp() at time zone 'UTC')::date - i
             from generate_series(0, 1) as i"""
    )
    with admin_site_with(database, OPENROUTER_DAY_BUDGET_USD="0.5") as site:
        front, spend = site.operator.get("/").text, site.operator.get("/spend").text

    assert re.search(r'class="bad"><dt>Spent today</dt><dd>\$0\.75 <span class="quiet">/ \$0\.50', front)
    assert re.search(r"Last 30 days</dt><dd>\$1\.50", spend)
    assert re.search(r'a/model</th><td class="number">2</td><td class="number">\$1\.50', spend)


def test_a_schedule_shows_its_next_run_and_how_the_last_one_ended_and_runs_now(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.rows("insert into job_schedule (name, job_type, every) values ('nightly / æ', 'test_job', '1 day')")
    database.rows("select * from sweep_jobs()")
    assert "none to be seen" in admin_site.operator.get("/schedules").text
    first = database.value("select id from job_queue")
    database.rows("update job_queue set status = 'running', started_at = now()")
    database.rows("update job_queue set status = 'error', error_class = 'crash', completed_at = now()")
    database.rows("select * from sweep_jobs()")
    page = admin_site.operator.get("/schedules").text
    assert re.search(r"status error.*crash", page, re.DOTALL)
    action = re.search(r'action="(/schedules/[^"]+)"', page)
    assert action

    ran = admin_site.operator.post(action[1])
    second = database.row("select id, scheduled_for <= now() as is_due from job_queue where status = 'pending'")
    assert (ran.status_code, ran.headers["location"]) == (303, "/schedules")
    assert second["id"] != first
    assert second["is_due"]
    assert "runs as soon as a worker is free" in admin_site.operator.get("/schedules").text
    assert database.value("select actor from audit_entry where action = 'job.retry'") == "kari"
    assert admin_site.operator.post("/schedules/nobody/run").status_code == 409


def test_a_schedule_is_switched_off_with_its_waiting_run_and_on_again(admin_site: AdminSite) -> None:
    database, post = admin_site.database, admin_site.operator.post
    database.rows("insert into job_schedule (name, job_type, every) values ('nightly / æ', 'test_job', '1 day')")
    database.rows("select * from sweep_jobs()")
    first = database.value("select id from job_queue")
    path = "/schedules/nightly%20%2F%20%C3%A6"

    assert (post(f"{path}/off").status_code, post(f"{path}/off").status_code) == (303, 303)
    database.rows("select * from sweep_jobs()")
    off = said(admin_site.operator.get("/schedules").text)
    assert "nightly / æ was switched off already." in off
    assert "switched off" in off.split("test_job")[1]
    assert "Switch on" in off
    assert "Run now" not in off
    ended = database.job(first)
    assert (ended["status"], ended["error_class"]) == ("error", "cancelled")
    assert ended["error_msg"] == "cancelled while waiting: the schedule was switched off"
    assert database.value("select count(*) from job_queue where status = 'pending'") == 0

    post(f"{path}/on")
    on = said(admin_site.operator.get("/schedules").text)
    assert "nightly / æ is switched on, and its next run is queued." in on
    assert "Run now" in on
    assert database.value("select count(*) from job_queue where status = 'pending'") == 1
    audit = "select actor, action, subject from audit_entry where action like 'schedule.%%' order by id"
    assert [tuple(row.values()) for row in database.rows(audit)] == [
        ("kari", "schedule.off", "nightly / æ"), ("kari", "schedule.on", "nightly / æ")
    ]  # fmt: skip
    assert post("/schedules/nobody/off").status_code == 404
    assert admin_site.viewer.post(f"{path}/off").status_code == 403
    assert "Switch off" not in admin_site.viewer.get("/schedules").text


def test_a_run_that_works_outlasts_the_switch(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.rows("insert into job_schedule (name, job_type, every) values ('nightly', 'test_job', '1 day')")
    database.rows("select * from sweep_jobs()")
    database.rows("update job_queue set status = 'running', started_at = now()")

    admin_site.operator.post("/schedules/nightly/off")

    page = said(admin_site.operator.get("/schedules").text)
    assert "switched off running" in page
    assert database.value("select status from job_queue") == "running"


def test_downloads_are_those_of_the_views(admin_site: AdminSite) -> None:
    admin_site.database.rows("insert into stats.day (day, state) values (current_date, 'open')")
    admin_site.database.rows("insert into stats.listener_day values (current_date, 'A', 3)")
    admin_site.database.rows(
        """insert into stats.download_day
           values (current_date, 'A', 'e.mp3', 'Player', 'app', 'phone', 'NO', 'x', 12345, 1)"""
    )
    for query in ("", "?days=7", "?days=365&show=A", "?days=x&show=B", "?show=%00", "?days=-1"):
        page = admin_site.operator.get(f"/statistics{query}")
        assert page.status_code == 200, query
        assert "12,345" in page.text, query


def test_a_type_is_paused_for_a_while_that_the_form_offers_only(admin_site: AdminSite) -> None:
    for minutes in ("", "7", "-15", "x", "1e3", "٣"):
        assert admin_site.operator.post("/types/test_job/pause", data={"minutes": minutes}).status_code == 400, minutes
    assert admin_site.operator.post("/types/nobody/pause", data={"minutes": "15"}).status_code == 404
    reason = "x" * 5000 + "\0"
    assert (
        admin_site.operator.post("/types/test_job/pause", data={"minutes": "15", "reason": reason}).status_code == 303
    )
    paused = admin_site.database.row(
        "select paused_until - now() < interval '16 minutes' as is_short, length(pause_reason) as length"
        " from job_type where name = 'test_job'"
    )

    assert paused == {"is_short": True, "length": 1000}


def test_the_audit_trail_is_paged_without_a_gap(admin_site: AdminSite) -> None:
    admin_site.database.rows("select record_audit('x.' || i) from generate_series(1, 250) as i")
    seen: list[str] = []
    path = "/audit"
    for _ in range(4):
        page = admin_site.operator.get(path).text
        seen += re.findall(r'<td class="mono">(x\.\d+)</td>', page)
        older = re.search(r'href="([^"]*before=\d+)">Older', page)
        if not older:
            break
        path = older[1].replace("&amp;", "&")
        admin_site.database.rows("select record_audit('new.while.reading')")

    assert seen == [f"x.{i}" for i in range(250, 0, -1)]
    for odd in ("before=x", "before=-1", "before=99999999999999999999", "actor=%00", "action=" + "y" * 500):
        assert admin_site.operator.get(f"/audit?{odd}").status_code == 200, odd
