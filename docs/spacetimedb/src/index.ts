// A SpacetimeDB module that keeps the latest state of every job, for pages that subscribe to it.
//
// Anybody may call a reducer of a database, so `job_event` takes calls of the forwarder alone, whom the owner has named
// with `allow_forwarder`. Events arrive at least once: what is not newer than what is here is dropped, and so is
// everything of an epoch that a restore has ended.

import { schema, SenderError, t, table, type ReducerCtx } from 'spacetimedb/server';

const caller = table(
  { name: 'caller' },
  { identity: t.identity().primaryKey(), isOwner: t.bool() },
);

const eventEpoch = table(
  { name: 'event_epoch' },
  { number: t.u64().primaryKey().autoInc(), epoch: t.string().unique() },
);

// Public: whoever may connect to this database sees it.
const jobProgress = table(
  { name: 'job_progress', public: true },
  {
    jobId: t.string().primaryKey(),
    epochNumber: t.u64(),
    eventId: t.u64(),
    jobType: t.string().index('btree'),
    status: t.string().index('btree'),
    attempt: t.u32(),
    maxAttempts: t.u32(),
    errorClass: t.option(t.string()),
    error: t.option(t.string()),
    changedAt: t.string(),
    textNb: t.string(),
    textEn: t.string(),
  },
);

const spacetimedb = schema({ caller, eventEpoch, jobProgress });
export default spacetimedb;

type Context = ReducerCtx<typeof spacetimedb.schemaType>;

// Who publishes the module owns it.
export const init = spacetimedb.init(ctx => {
  ctx.db.caller.insert({ identity: ctx.sender, isOwner: true });
});

export const allow_forwarder = spacetimedb.reducer({ identity: t.identity() }, (ctx, { identity }) => {
  if (!ctx.db.caller.identity.find(ctx.sender)?.isOwner) {
    throw new SenderError('only the owner names forwarders');
  }
  if (!ctx.db.caller.identity.find(identity)) {
    ctx.db.caller.insert({ identity, isOwner: false });
  }
});

// The forwarder calls this with a JSON array: the order of the arguments is part of the contract.
export const job_event = spacetimedb.reducer(
  {
    epoch: t.string(),
    eventId: t.u64(),
    jobId: t.string(),
    jobType: t.string(),
    oldStatus: t.option(t.string()),
    newStatus: t.string(),
    attempt: t.u32(),
    maxAttempts: t.u32(),
    errorClass: t.option(t.string()),
    error: t.option(t.string()),
    at: t.string(),
    textNb: t.string(),
    textEn: t.string(),
  },
  (ctx, event) => {
    if (!ctx.db.caller.identity.find(ctx.sender)) {
      throw new SenderError('this identity is no forwarder: see allow_forwarder');
    }
    const epochNumber = numberOf(ctx, event.epoch);
    const known = ctx.db.jobProgress.jobId.find(event.jobId);
    if (known && !isNewer(epochNumber, event.eventId, known)) {
      return;
    }
    const row = {
      jobId: event.jobId,
      epochNumber,
      eventId: event.eventId,
      jobType: event.jobType,
      status: event.newStatus,
      attempt: event.attempt,
      maxAttempts: event.maxAttempts,
      errorClass: event.errorClass,
      error: event.error,
      changedAt: event.at,
      textNb: event.textNb,
      textEn: event.textEn,
    };
    if (known) {
      ctx.db.jobProgress.jobId.update(row);
    } else {
      ctx.db.jobProgress.insert(row);
    }
  },
);

// Epochs are numbered as they are first seen: a later one follows a restore, and replaces the earlier ones.
function numberOf(ctx: Context, epoch: string): bigint {
  const known = ctx.db.eventEpoch.epoch.find(epoch);
  return known ? known.number : ctx.db.eventEpoch.insert({ number: 0n, epoch }).number;
}

function isNewer(epochNumber: bigint, eventId: bigint, known: { epochNumber: bigint; eventId: bigint }): boolean {
  return epochNumber === known.epochNumber ? eventId > known.eventId : epochNumber > known.epochNumber;
}
