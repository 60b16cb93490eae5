"""No page that lists jobs reads the whole table, whatever it is filtered by: millions of jobs would take minutes."""

from tests.services.admin_site import AdminSite
from tests.waiting import wait_until

JOBS = 40_000
PAGES = (
    "/", "/jobs", "/jobs?status=pending", "/jobs?status=error", "/jobs?status=completed&status=retry",
    "/jobs?status=running", "/jobs?type=test_job", "/jobs?type=nobody", "/jobs?class=bad", "/jobs?class=none",
    "/jobs?worker=w1", "/jobs?q=nothing+like+it", "/jobs?since=2026-01-01&until=2026-01-02", "/jobs?id=abcd",
    "/jobs?status=error&q=no", "/errors", "/errors?type=test_job", "/jobs/all?action=retry&status=error",
    "/jobs/all?action=cancel&status=pending", "/workers", "/schedules", "/spend", "/audit",
)  # fmt: skip
FILL = """
insert into job_queue
    (job_type, payload, status, completed_at, started_at, error_class, error_msg, worker_id, created_at)
select 'test_job', '{"path": "a.mp3"}', status, case when status in ('completed', 'error') then at end, at,
       case when status = 'error' then 'bad' end, case when status = 'error' then 'no ' || i end, 'w1', at
  from (select i, now() - i * interval '1 minute' as at,
               (case i %% 40 when 0 then 'pending' when 1 then 'retry'
                             else (array['completed', 'error', 'completed'])[1 + i %% 3] end)::job_status as status
          from generate_series(1, %s) as i) as made
"""
SCANS = "select seq_scan + seq_tup_read as read from pg_stat_user_tables where relname = 'job_queue'"
SESSIONS = "select 1 from pg_stat_activity where usename = 'jobbko_admin' and datname = current_database()"


def test_no_page_reads_the_table_of_jobs(admin_site: AdminSite) -> None:
    database = admin_site.database
    database.rows("set session_replication_role = replica")
    database.rows(FILL, JOBS)
    database.rows("vacuum analyze job_queue")
    database.rows("select pg_stat_force_next_flush()")
    before = database.value(SCANS)

    wrong = [page for page in PAGES if admin_site.operator.get(page).status_code != 200]
    admin_site.stop()
    wait_until(lambda: not database.rows(SESSIONS), what="the view's sessions to end, and to tell what they read")

    assert wrong == []
    assert database.value(SCANS) == before
