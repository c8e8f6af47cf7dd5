import { isObjectId, Refused, refusals } from '#agent';
import {
  allOf,
  ALWAYS_KEEP,
  type ClassAccess,
  type ClassOperation,
  isOwnRow,
  isRefusal,
  planWrite,
  rawWriteGate,
  type Where,
  type WritePlan,
} from '#policy';
import type { GovernedWrites, JudgedWrite, ProposedWrite, WriteOptions } from '../governed-writes.js';
import type { ParseRow, RecordWriter } from '../record-store.js';
import { tracePassed } from './class-entry.js';
import { everyIndex } from './class-indexes.js';
import type { WriteKeys } from '../write-keys.js';
import { assertClassPermits } from './class-permission.js';
import { KeyedWrites } from './keyed-writes.js';
import { ParleyRecords } from './parley-records.js';
import { presentRow } from './presented-row.js';
import { type RecordsParts, RowRules } from './row-rules.js';
import { atStore, atWriter } from './store-faults.js';

export interface WritesParts extends RecordsParts {
  readonly writer: RecordWriter;
  readonly keys: WriteKeys;
}

/** The governed door to changing rows for one call. The order of its checks is that of docs/life-of-a-call.md. */
export class ParleyWrites implements GovernedWrites {
  private readonly rules: RowRules;
  private readonly keyed: KeyedWrites;

  constructor(private readonly parts: WritesParts) {
    this.rules = new RowRules(parts);
    this.keyed = new KeyedWrites(parts.keys, parts.agent.principal);
  }

  async create(className: unknown, fields: unknown, options: WriteOptions = {}): Promise<ParseRow> {
    const access = this.enter(className, 'create');
    const plan = await this.plan(access, fields, 'create');
    const { writer, operation } = this.parts;
    const create = (id?: string) =>
      atWriter(operation, () => writer.create(access.className, plan.fields, operation, id));
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.present(await create(), access);
    return this.keyed.run(idempotencyKey, {
      named: ['create', access.className, fields],
      repeatable: writer.takesObjectIds,
      write: async (id) => {
        const row = await this.createdOnce(access, id, create);
        return { result: row, objectId: String(row['objectId']) };
      },
      again: (id) => this.shown(access, id),
    });
  }

  async update(
    className: unknown,
    objectId: unknown,
    fields: unknown,
    options: WriteOptions = {},
  ): Promise<ParseRow> {
    const access = this.enter(className, 'update');
    const id = readId(objectId);
    const plan = await this.plan(access, fields, 'update');
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.updated(access, id, plan);
    return this.keyed.run(idempotencyKey, {
      named: ['update', access.className, id, fields],
      repeatable: false,
      write: async () => ({ result: await this.updated(access, id, plan), objectId: id }),
      again: () => this.shown(access, id),
    });
  }

  private async updated(access: ClassAccess, id: string, plan: WritePlan): Promise<ParseRow> {
    const limits = await this.ownRow(access, id, 'update');
    const { writer, operation } = this.parts;
    const row = await atWriter(operation, () =>
      writer.update(access.className, id, plan.fields, limits, operation),
    );
    if (!row) throw new Refused(await this.rules.noSuchRow(access.className, [id]));
    return this.present(row, access);
  }

  async delete(className: unknown, objectId: unknown, options: WriteOptions = {}): Promise<void> {
    const access = this.enter(className, 'delete');
    this.rules.tenant(access.className);
    const id = readId(objectId);
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return this.deleted(access, id);
    return this.keyed.run(idempotencyKey, {
      named: ['delete', access.className, id],
      repeatable: false,
      write: async () => {
        await this.deleted(access, id);
        return { result: undefined, objectId: id };
      },
      again: () => Promise.resolve(),
    });
  }

  private async deleted(access: ClassAccess, id: string): Promise<void> {
    const limits = await this.ownRow(access, id, 'delete');
    const { writer, operation } = this.parts;
    const deleted = await atWriter(operation, () => writer.delete(access.className, id, limits, operation));
    if (!deleted) throw new Refused(await this.rules.noSuchRow(access.className, [id]));
  }

  /** The id stands for the key: where a row has it, an earlier attempt made it. */
  private async createdOnce(
    access: ClassAccess,
    id: string,
    create: (id?: string) => Promise<ParseRow>,
  ): Promise<ParseRow> {
    const { writer, operatorReader, operation } = this.parts;
    if (!writer.takesObjectIds) return this.present(await create(), access);
    try {
      return await this.present(await create(id), access);
    } catch (error) {
      const stored = await operatorReader
        .count({ className: access.className, where: { objectId: id } }, operation)
        .catch(() => 0);
      if (stored === 0) throw error;
      return this.shown(access, id);
    }
  }

  /** The row as the caller reads it now, or no more than its id. */
  private async shown(access: ClassAccess, id: string): Promise<ParseRow> {
    const [row] = await readAsCaller(this.parts, access.className, id);
    return row ?? { objectId: id };
  }

  async judge(write: ProposedWrite): Promise<JudgedWrite> {
    const { operation } = write;
    const access = this.enter(write.className, operation);
    const { className } = access;
    if (operation === 'create') {
      const { fields } = await this.plan(access, write.fields, operation);
      return { className, objectId: null, before: null, fields };
    }
    if (operation === 'delete') this.rules.tenant(className);
    const objectId = readId(write.objectId);
    const fields = operation === 'update' ? (await this.plan(access, write.fields, operation)).fields : null;
    await this.ownRow(access, objectId, operation);
    const [before = null] = await readAsCaller(this.parts, className, objectId);
    return { className, objectId, before, fields };
  }

  private enter(className: unknown, permission: ClassOperation): ClassAccess {
    const { scope, agent } = this.parts;
    const access = scope.enter(agent, className, null);
    if (isRefusal(access)) throw new Refused(access);
    const system = rawWriteGate(agent, access.className);
    if (system) throw new Refused(system);
    tracePassed(this.rules.trace, 'class', access);
    assertClassPermits(this.parts, access.className, permission);
    this.rules.trace?.passed('class_permissions', access.className);
    return access;
  }

  private async plan(
    access: ClassAccess,
    fields: unknown,
    operation: 'create' | 'update',
  ): Promise<WritePlan> {
    const { scope, agent } = this.parts;
    const reach = scope.reachFor(agent);
    const plan = planWrite(fields, {
      agent,
      access,
      policy: scope.classPolicy(access.className),
      operation,
      tenant: this.rules.tenant(access.className),
      indexes: access.masks ? await everyIndex(access, this.parts) : [],
      judgeClass: (className) => {
        const judged = reach.reach(className, 'pointer');
        if (isRefusal(judged)) throw new Refused(judged);
      },
    });
    if (plan.added.size > 0) assertClassPermits(this.parts, access.className, 'addField');
    return plan;
  }

  /**
   * The stored row must be one that exists for this agent, and its tenant's own. What was verified is also the condition
   * of the write itself: a row that changed hands in between stays as it is.
   */
  private async ownRow(access: ClassAccess, objectId: string, change: 'update' | 'delete'): Promise<Where> {
    // Its owner may write what it may not read: the row's rights are part of the constraint, not of who asks.
    const { operatorReader: reader, operation } = this.parts;
    const { className } = access;
    const limits = { canonical: false, operation: change } as const;
    const { tenant, where: visible } = await this.rules.predicate(className, limits);
    const where = allOf({ objectId }, visible);
    const [row] = await atStore(operation, () =>
      reader.find({ className, where, limit: 1, keys: tenant ? [tenant.field] : ['objectId'] }, operation),
    );
    if (!row || (tenant && !isOwnRow(tenant, row)))
      throw new Refused(await this.rules.noSuchRow(className, [objectId]));
    return visible;
  }

  /** A caller with rights of its own may write what it may not read: the row is read again, as itself. */
  private async present(row: ParseRow, access: ClassAccess): Promise<ParseRow> {
    const { scope } = this.parts;
    if (scope.rights.unlimited) return presentRow(row, access, this.parts);
    const id = String(row['objectId']);
    const [readable] = await readAsCaller(this.parts, access.className, id);
    return readable ?? Object.fromEntries(ALWAYS_KEEP.map((name) => [name, row[name]]));
  }
}

async function readAsCaller(parts: RecordsParts, className: string, id: string): Promise<ParseRow[]> {
  try {
    return (await new ParleyRecords(parts).getMany(className, [id])).rows;
  } catch (error) {
    // The write is done; a refusal to read only says how little of it may be shown.
    if (error instanceof Refused) return [];
    throw error;
  }
}

function readId(objectId: unknown): string {
  if (objectId === undefined || objectId === null || objectId === '')
    throw new Refused(refusals.invalidArgument('missing required argument: object_id'));
  if (isObjectId(objectId)) return objectId;
  throw new Refused(
    refusals.invalidArgument('object ids are letters, digits, _ and -, at most 32 characters'),
  );
}
