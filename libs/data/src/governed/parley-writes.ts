import { randomInt } from 'node:crypto';
import { callerKey, orThrow, Refused, refuse } from '#core';
import { type ClassAccess, directWriteGate, mergeFilters, type WritePlan } from '#policy';
import type { GovernedWrites, JudgedWrite, ProposedWrite, WriteOptions } from '../governed-access.js';
import type { ParseRow } from '../record-store.js';
import type { WriteMark } from '../write-keys.js';
import { type KeyedAttempt, KeyedWrites } from './keyed-writes.js';
import { atWriter } from './store-refusals.js';
import { type GovernedWriteCall, readId, WriteRules } from './write-rules.js';

/** Attempts at a keyed update while other writers change its row. */
const CONTENDED_TRIES = 5;

/** Governed writes of one call. The order of the checks is that of docs/contributing/life-of-a-call.md. */
export class ParleyWrites implements GovernedWrites {
  private readonly rules: WriteRules;
  private readonly keyed: KeyedWrites;

  constructor(private readonly call: GovernedWriteCall) {
    this.rules = new WriteRules(call);
    this.keyed = new KeyedWrites(call.keys, callerKey(call.agent));
  }

  async create(className: unknown, fields: unknown, options: WriteOptions = {}): Promise<ParseRow> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.rules.enter(className, 'create');
    const plan = await this.rules.planFields(access, fields, 'create');
    const { write, ids, operation } = this.call;
    const { className: name } = access;
    const create = (objectId?: string) =>
      this.rules.runWrite(access, () =>
        write({ kind: 'create', className: name, fields: plan.fields, objectId }),
      );
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.rules.present(await create(), access);
    return this.keyed.run(idempotencyKey, {
      named: ['create', access.className, fields],
      repeatable: ids.takesObjectIds,
      write: async ({ objectId }) => {
        const id = await atWriter(operation, () => ids.idFor(name, objectId, operation));
        const row = await this.createOnce(access, id, create);
        return { result: row, objectId: String(row['objectId']) };
      },
      again: (id) => this.findMadeBefore(access, id),
    });
  }

  async update(
    className: unknown,
    objectId: unknown,
    fields: unknown,
    options: WriteOptions = {},
  ): Promise<ParseRow> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.rules.enter(className, 'update');
    const id = readId(objectId, access);
    const plan = await this.rules.planFields(access, fields, 'update');
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.updateObject(access, id, plan);
    return this.keyed.run(idempotencyKey, {
      named: ['update', access.className, id, fields],
      repeatable: false,
      write: async (attempt) => ({ result: await this.updateOnce(access, id, plan, attempt), objectId: id }),
      again: async () => {
        await this.rules.ownRow(access, id, 'update');
        return this.rules.readShown(access, id);
      },
    });
  }

  private async updateObject(access: ClassAccess, id: string, plan: WritePlan): Promise<ParseRow> {
    const where = await this.rules.admitOwn(access, id, 'update');
    const row = await this.rules.runWrite(access, () =>
      this.call.write({
        kind: 'update',
        className: access.className,
        objectId: id,
        fields: plan.fields,
        where,
      }),
    );
    if (!row) throw new Refused(await this.rules.rows.noSuchRow(access.className, [id]));
    return this.rules.present(row, access);
  }

  /**
   * Every attempt requires that the row is in the state that its first attempt read, and sets a time stamp that was stored
   * before: at most one of all attempts is applied, and the row shows which. After a change by another writer the row does
   * not show it any more.
   */
  private async updateOnce(
    access: ClassAccess,
    id: string,
    plan: WritePlan,
    attempt: KeyedAttempt,
  ): Promise<ParseRow> {
    const { write, ids } = this.call;
    const { className } = access;
    const { previous } = attempt;
    for (let tries = 0; ids.takesObjectIds && tries < CONTENDED_TRIES; tries += 1) {
      const { where, row: found } = await this.rules.ownRow(access, id, 'update');
      const before = found['updatedAt'];
      if (previous?.after.includes(String(before))) return this.rules.readShown(access, id);
      if (previous && previous.before !== before) throw refuse.keyedOutcomeUnknown();
      if (typeof before !== 'string') break;
      const after = stampAfter(before);
      await attempt.markSending(id, { before, after });
      const unchanged = mergeFilters(where, { updatedAt: dateValue(before) });
      const row = await this.rules.runWrite(access, () =>
        write({
          kind: 'update',
          className,
          objectId: id,
          fields: plan.fields,
          where: unchanged,
          updatedAt: after,
        }),
      );
      if (row) return this.rules.present(row, access);
    }
    if (previous) throw refuse.keyedOutcomeUnknown();
    await attempt.markSending(id);
    return this.updateObject(access, id, plan);
  }

  async delete(className: unknown, objectId: unknown, options: WriteOptions = {}): Promise<void> {
    orThrow(directWriteGate(this.call.agent));
    const access = this.rules.admit(className, 'delete');
    const id = readId(objectId, access);
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.deleteObject(access, id);
    return this.keyed.run(idempotencyKey, {
      named: ['delete', access.className, id],
      repeatable: false,
      write: async (attempt) => {
        await this.deleteOnce(access, id, attempt);
        return { result: undefined, objectId: id };
      },
      again: () => Promise.resolve(),
    });
  }

  private async deleteObject(access: ClassAccess, id: string): Promise<void> {
    if (await this.rules.deleteWhere(access, id, await this.rules.admitOwn(access, id, 'delete'))) return;
    throw new Refused(await this.rules.rows.noSuchRow(access.className, [id]));
  }

  /**
   * A row that an attempt was to delete and that no longer exists is deleted: no attempt affects a row created later under
   * its id.
   */
  private async deleteOnce(access: ClassAccess, id: string, attempt: KeyedAttempt): Promise<void> {
    const { takesObjectIds } = this.call.ids;
    const { previous } = attempt;
    if (previous && !(await this.isStored(access, id, previous))) return;
    // Parse Server may still be processing the write, and its triggers would run twice.
    if (previous && !takesObjectIds) throw refuse.keyedOutcomeUnknown();
    const { where, row } = await this.rules.ownRow(access, id, 'delete');
    const before = row['createdAt'];
    if (typeof before !== 'string') {
      await attempt.markSending(id);
      return this.deleteObject(access, id);
    }
    await attempt.markSending(id, { before });
    const same = takesObjectIds ? mergeFilters(where, { createdAt: dateValue(before) }) : where;
    if (await this.rules.deleteWhere(access, id, same)) return;
    if (previous && !(await this.isStored(access, id, previous))) return;
    throw new Refused(await this.rules.rows.noSuchRow(access.className, [id]));
  }

  /**
   * Whether the row that an attempt was to delete exists, for any caller. It existed for this caller when the attempt
   * began.
   */
  private async isStored({ className }: ClassAccess, id: string, { before }: WriteMark): Promise<boolean> {
    const where = { objectId: id, createdAt: dateValue(before) };
    return (await this.call.readAsOperator({ kind: 'count', className, where })) > 0;
  }

  /** The key determines the id: where a row has it, an earlier attempt created it. */
  private async createOnce(
    access: ClassAccess,
    id: string,
    create: (id?: string) => Promise<ParseRow>,
  ): Promise<ParseRow> {
    const { ids, readAsOperator } = this.call;
    if (!ids.takesObjectIds) return this.rules.present(await create(), access);
    try {
      return await this.rules.present(await create(id), access);
    } catch (error) {
      const { className } = access;
      const stored = await readAsOperator({ kind: 'count', className, where: { objectId: id } }).catch(
        () => 0,
      );
      if (stored === 0) throw error;
      return this.findMadeBefore(access, id);
    }
  }

  /**
   * A row that an earlier call created. Whoever creates rows may have no right to read them, but the operator's limits still
   * have to admit the row. @throws Refused
   */
  private async findMadeBefore(access: ClassAccess, objectId: string): Promise<ParseRow> {
    const { className } = access;
    const { declared } = await this.rules.rows.predicate(className, { canonical: false, operation: 'find' });
    const where = mergeFilters({ objectId }, declared);
    if ((await this.call.readAsOperator({ kind: 'count', className, where })) === 0)
      throw new Refused(await this.rules.rows.noSuchRow(className, [objectId]));
    return this.rules.readShown(access, objectId);
  }

  async judge(write: ProposedWrite): Promise<JudgedWrite> {
    const { className, objectId, before, fields } = await this.rules.plan(write);
    return { className, objectId, before, fields };
  }

  async admit(className: unknown, operation: ProposedWrite['operation']): Promise<void> {
    this.rules.admit(className, operation);
  }
}

const dateValue = (iso: string) => ({ __type: 'Date', iso });

/** Milliseconds among which a stamp ahead of the clock is chosen. */
const STAMPS_AHEAD = 1_000;

/**
 * Now, and later than the stamp that the row has. Where that one is ahead of the clock, every writer would choose the next
 * millisecond: a random one distinguishes this attempt from others.
 */
function stampAfter(before: string): string {
  const now = Date.now();
  const least = Date.parse(before) + 1;
  return new Date(now >= least ? now : least + randomInt(STAMPS_AHEAD)).toISOString();
}
