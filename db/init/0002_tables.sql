-- The tables. job_queue is the contract with other programs: every column, type and default of the specification
-- stands as written; what follows "additions" is this system's own. docs/architecture.md draws the states.

begin;
insert into schema_migrations (version, name) values (2, 'tables');
set local role jobbko_owner;

create type job_status as enum (
    'pending',    -- waits for its first run, or was put back unharmed: -> running, error (cancelled)
    'running',    -- a worker holds it: -> completed, retry, error, pending (released, postponed)
    'completed',  -- ended well, result is set; final
    'error',      -- ended badly or cancelled, error_class and error_msg say how; final until someone retries it
    'retry'       -- failed at least once, waits until scheduled_for: -> running, error (cancelled)
);
comment on type job_status is
    'pending: waits; running: held by a worker; completed: final, has a result; error: final, failed or cancelled; retry: failed before, waits for its next run';

create table job_type (
    name                  text        primary key,
    role                  name        not null,
    payload_schema        jsonb,
    lease_seconds         integer     not null default 120      check (lease_seconds between 1 and 86400),
    longest_run_seconds   integer     not null default 21600    check (longest_run_seconds > 0),
    stall_seconds         integer     not null default 0        check (stall_seconds >= 0),
    batch_size            smallint    not null default 1        check (batch_size between 1 and 1000),
    payload_limit_bytes   integer     not null default 1048576  check (payload_limit_bytes > 0),
    keep_completed_days   integer     not null default 0        check (keep_completed_days >= 0),
    keep_error_days       integer     not null default 0        check (keep_error_days >= 0),
    follow_ups            text[]      not null default '{}',
    backoff_base_seconds  integer     not null default 30       check (backoff_base_seconds > 0),
    backoff_cap_seconds   integer     not null default 3600     check (backoff_cap_seconds > 0),
    backoff_jitter        real        not null default 0        check (backoff_jitter between 0 and 1),
    paused_at             timestamptz,
    paused_until          timestamptz,
    pause_origin          text        check (pause_origin in ('operator', 'worker', 'budget')),
    pause_reason          text,
    pause_class           text,
    check ((paused_at is null) = (pause_origin is null))
);
comment on table  job_type is 'Rules per job type, from services/*/job_type.toml through migrate; a type without a row gets the defaults';
comment on column job_type.name is 'The job_type of the jobs';
comment on column job_type.role is 'Login role that may work this type';
comment on column job_type.payload_schema is 'JSON Schema of the payload, written by the worker when it registers';
comment on column job_type.lease_seconds is 'How long a claim holds without a heartbeat';
comment on column job_type.longest_run_seconds is 'A run is stopped after this time; a run without a lease is swept after it';
comment on column job_type.stall_seconds is 'A run is stopped after this time without progress; 0 = never';
comment on column job_type.batch_size is 'Jobs taken by one claim';
comment on column job_type.payload_limit_bytes is 'Largest payload, as JSON text';
comment on column job_type.keep_completed_days is 'Completed jobs are kept this long; 0 = for ever';
comment on column job_type.keep_error_days is 'Jobs in error are kept this long; 0 = for ever';
comment on column job_type.follow_ups is 'Job types that the role of this type may enqueue';
comment on column job_type.backoff_base_seconds is 'Wait before the first retry; doubles with each further one';
comment on column job_type.backoff_cap_seconds is 'Longest wait before a retry';
comment on column job_type.backoff_jitter is 'Up to this share is added to each wait, at random';
comment on column job_type.paused_at is 'Since when nothing of this type is claimed';
comment on column job_type.paused_until is 'When the pause ends by itself; null = when someone resumes';
comment on column job_type.pause_origin is 'operator, worker or budget; an automatic resume never lifts an operator''s pause';
comment on column job_type.pause_reason is 'Why, in words for a person';
comment on column job_type.pause_class is 'Why, as a word that a worker knows its own pause by';

create table job_queue (
    id                  uuid        primary key default gen_random_uuid(),
    job_type            text        not null,
    payload             jsonb       not null,
    status              job_status  not null default 'pending',
    priority            smallint    not null default 0,
    result              jsonb,
    error_msg           text,
    attempts            smallint    not null default 0,
    max_attempts        smallint    not null default 3,
    created_at          timestamptz not null default now(),
    started_at          timestamptz,
    completed_at        timestamptz,
    scheduled_for       timestamptz not null default now(),
    -- additions
    worker_id           text,
    lease_token         uuid,
    lease_until         timestamptz,
    progress            real,
    progress_note       text,
    progress_at         timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason       text,
    unique_key          text,
    rerun_requested_at  timestamptz,
    rerun_payload       jsonb,
    parent_id           uuid,
    postponements       smallint    not null default 0,
    error_class         text,
    -- Drivers cannot read infinity or the year 10000; one such row must not break a listing. Bounds are generous.
    constraint job_queue_times_between_2000_and_2200 check (
        least(scheduled_for, created_at, started_at, completed_at, lease_until, cancel_requested_at,
              rerun_requested_at) >= '2000-01-01 00:00+00'
        and greatest(scheduled_for, created_at, started_at, completed_at, lease_until, cancel_requested_at,
                     rerun_requested_at) < '2200-01-01 00:00+00'),
    -- A longer one fits one index but not another: such a row could be claimed but never put back.
    constraint job_queue_job_type_fits_its_indexes check (octet_length(job_type) <= 1000),
    constraint job_queue_progress_is_a_share check (progress between 0 and 1)
) with (
    fillfactor = 70,                           -- room on the page: heartbeats stay heap-only updates
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);
comment on table  job_queue is 'The jobs. A bare INSERT of job_type and payload is a complete enqueue';
comment on column job_queue.id is 'Identity of the job';
comment on column job_queue.job_type is 'Which worker runs it';
comment on column job_queue.payload is 'Input: paths, text, ids; never audio';
comment on column job_queue.status is 'See the type job_status';
comment on column job_queue.priority is 'Higher is more important; any smallint';
comment on column job_queue.result is 'What a completed job returned';
comment on column job_queue.error_msg is 'Message of the last failure, while the status is retry or error';
comment on column job_queue.attempts is 'Failures so far; a running job is at attempt attempts + 1';
comment on column job_queue.max_attempts is 'At this many failures the job ends in error';
comment on column job_queue.created_at is 'When it was enqueued';
comment on column job_queue.started_at is 'When its latest run was claimed';
comment on column job_queue.completed_at is 'When it ended, in completed or in error';
comment on column job_queue.scheduled_for is 'Not claimed before this time';
comment on column job_queue.worker_id is 'Worker of the latest run';
comment on column job_queue.lease_token is 'Fence: random per claim; every later write about the run must name it';
comment on column job_queue.lease_until is 'The run is lost when this passes without a heartbeat; null for a worker that keeps no lease';
comment on column job_queue.progress is 'Share done of the present run, 0 to 1';
comment on column job_queue.progress_note is 'What the present run is at, in words';
comment on column job_queue.progress_at is 'When one of the two last became another; a heartbeat alone does not change it';
comment on column job_queue.cancel_requested_at is 'Someone asked to cancel the present run';
comment on column job_queue.cancel_reason is 'Why, in their words';
comment on column job_queue.unique_key is 'At most one waiting or running job per job_type and key';
comment on column job_queue.rerun_requested_at is 'The key was enqueued again while this job ran: one more job follows it';
comment on column job_queue.rerun_payload is 'Payload of the job that follows, the newest one asked for';
comment on column job_queue.parent_id is 'Job that enqueued this one';
comment on column job_queue.postponements is 'How often the worker said "come back later"';
comment on column job_queue.error_class is 'Class of the last failure; what counts, alerts and groups go by';

-- The specification's index with job_type in front: without it, a backlog of another type leaves 2 % of the speed.
create index idx_job_queue_pending on job_queue (job_type, priority desc, scheduled_for asc, id)
    where status in ('pending', 'retry');
-- A handful of rows; serves the sweep, the running gauges and the workers' list. Never add lease_until or progress.
create index job_queue_running on job_queue (job_type) where status = 'running';
create index job_queue_error on job_queue (job_type, completed_at desc) where status = 'error';
create index job_queue_created on job_queue (created_at desc, id desc);
create index job_queue_parent on job_queue (parent_id) where parent_id is not null;
create unique index job_queue_unique_key on job_queue (job_type, unique_key)
    where unique_key is not null and status in ('pending', 'retry', 'running');

create table job_attempt (
    id          bigint      generated always as identity primary key,
    job_id      uuid        not null references job_queue (id) on delete cascade,
    attempt     smallint    not null,
    worker_id   text,
    lease_token uuid,
    started_at  timestamptz,
    ended_at    timestamptz not null default clock_timestamp(),
    outcome     text        not null check (outcome in ('failed', 'lost', 'released', 'postponed', 'cancelled')),
    charged     boolean     not null,
    error_class text,
    error_msg   text,
    traceback   text,
    checkpoint  integer     not null default 0,
    progress    real,
    forgiven    boolean     not null default false
);
create index job_attempt_job on job_attempt (job_id, id);
comment on table  job_attempt is 'Every failed, lost, released, postponed or cancelled run';
comment on column job_attempt.id is 'Identity, in the order of recording';
comment on column job_attempt.job_id is 'The job';
comment on column job_attempt.attempt is 'Number of the run, from 1, as shown while it ran';
comment on column job_attempt.worker_id is 'Worker that ran it';
comment on column job_attempt.lease_token is 'Token of the run';
comment on column job_attempt.started_at is 'When it was claimed';
comment on column job_attempt.ended_at is 'When its end was recorded';
comment on column job_attempt.outcome is 'failed: the handler raised; lost: the lease expired; released: put back unharmed; postponed: come back later; cancelled';
comment on column job_attempt.charged is 'Whether it cost one of max_attempts';
comment on column job_attempt.error_class is 'Class of the failure';
comment on column job_attempt.error_msg is 'Message of the failure';
comment on column job_attempt.traceback is 'Python traceback of the failure';
comment on column job_attempt.checkpoint is 'Sequence number of the last checkpoint at the end of the run; 0 = none';
comment on column job_attempt.progress is 'Share done when it ended';
comment on column job_attempt.forgiven is 'An operator has retried the job since: no longer counted against it';

create table job_checkpoint (
    job_id      uuid        not null references job_queue (id) on delete cascade,
    seq         integer     not null,
    lease_token uuid        not null,
    data        jsonb       not null,
    written_at  timestamptz not null default clock_timestamp(),
    primary key (job_id, seq)
);
comment on table  job_checkpoint is 'Finished parts of unfinished jobs, append-only, removed when the job completes';
comment on column job_checkpoint.job_id is 'The job';
comment on column job_checkpoint.seq is 'Order, from 1';
comment on column job_checkpoint.lease_token is 'Run that wrote it';
comment on column job_checkpoint.data is 'Whatever the handler needs to go on from here';
comment on column job_checkpoint.written_at is 'When';

create table job_schedule (
    name         text        primary key check (length(name) between 1 and 200),
    job_type     text        not null check (length(job_type) between 1 and 200),
    payload      jsonb       not null default '{}',
    priority     smallint    not null default 0,
    max_attempts smallint    not null default 3,
    every        interval    not null
                             check (every between interval '1 second' and interval '3660 days'
                                    and extract(month from every) = 0 and extract(year from every) = 0),
    anchor       timestamp   not null default timestamp '2024-01-01 00:00'
                             check (anchor between '2000-01-01' and '2200-01-01'),
    time_zone    text        not null default 'UTC'   -- the check raises for a name that is no zone
                             check ((timestamp '2024-01-01 00:00' at time zone time_zone) is not null),
    enabled      boolean     not null default true
);
comment on table  job_schedule is 'Recurring jobs. Every sweep sees to it that exactly one run of each is waiting or running';
comment on column job_schedule.name is 'Name; the unique_key of its runs is "schedule:" and this';
comment on column job_schedule.job_type is 'Type of its runs';
comment on column job_schedule.payload is 'Payload of its runs';
comment on column job_schedule.priority is 'Priority of its runs';
comment on column job_schedule.max_attempts is 'Attempts of its runs';
comment on column job_schedule.every is 'Width of the grid, without months: its points lie a whole number of these after anchor';
comment on column job_schedule.anchor is 'A point of the grid, wall-clock time in time_zone';
comment on column job_schedule.time_zone is 'Zone of the grid, for grids of days that follow the wall clock';
comment on column job_schedule.enabled is 'Whether runs are queued';

create table job_event (
    id          bigint      generated always as identity primary key,
    xid         xid8        not null default pg_current_xact_id(),
    job_id      uuid        not null,
    job_type    text        not null,
    old_status  job_status,
    new_status  job_status  not null,
    attempts    smallint    not null,
    error_class text,
    worker_id   text,
    actor       text        not null,
    at          timestamptz not null default clock_timestamp()
);
create index job_event_job on job_event (job_id, id);
create index job_event_cursor on job_event (xid, id);
comment on table  job_event is 'One row per change of a job''s status, written by a trigger: timeline, live view, deliveries, audit';
comment on column job_event.id is 'Order of recording; within one job that of its changes';
comment on column job_event.xid is 'Transaction that made the change: a reader that goes on from (xid, id), below the oldest running one, misses none';
comment on column job_event.job_id is 'The job';
comment on column job_event.job_type is 'Its type';
comment on column job_event.old_status is 'Status before; null = enqueued';
comment on column job_event.new_status is 'Status after';
comment on column job_event.attempts is 'Failures so far, after the change';
comment on column job_event.error_class is 'Class of the failure, after the change';
comment on column job_event.worker_id is 'Worker of the run';
comment on column job_event.actor is 'Login role that made the change, or the name that the operator''s program gave';
comment on column job_event.at is 'When';

create table worker (
    worker_id      text        primary key,
    job_type       text        not null,
    role           name        not null default session_user,
    version        text        not null,
    host           text        not null,
    pid            integer     not null,
    started_at     timestamptz not null default clock_timestamp(),
    seen_at        timestamptz not null default clock_timestamp(),
    idle           boolean     not null default false,
    current_job_id uuid,
    current_since  timestamptz
) with (fillfactor = 50);
comment on table  worker is 'Worker processes that are alive; a row not seen for a minute is removed by the sweep';
comment on column worker.worker_id is 'Name of the process: host, process id and a random part';
comment on column worker.job_type is 'Type that it works';
comment on column worker.role is 'Login role';
comment on column worker.version is 'Version of its code';
comment on column worker.host is 'Host or container';
comment on column worker.pid is 'Process id there';
comment on column worker.started_at is 'When it registered';
comment on column worker.seen_at is 'Last heartbeat';
comment on column worker.idle is 'It sleeps until a notification or its next poll: an enqueue notifies only then';
comment on column worker.current_job_id is 'Job that it runs (the first of a batch)';
comment on column worker.current_since is 'Since when';

commit;
