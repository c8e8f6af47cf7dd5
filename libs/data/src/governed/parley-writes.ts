import { isObjectId, Refused, refusals } from '#agent';
import {
  allOf,
  ALWAYS_KEEP,
  type ClassAccess,
  type ClassOperation,
  foreignRow,
  isRefusal,
  planWrite,
  rawWriteGate,
  type Where,
  type WritePlan,
} from '#policy';
import type { GovernedWrites, JudgedWrite, ProposedWrite } from '../governed-writes.js';
import type { ParseRow, RecordWriter } from '../record-store.js';
import { tracePassed } from './class-entry.js';
import { everyIndex } from './class-indexes.js';
import { assertClassPermits } from './class-permission.js';
import { ParleyRecords } from './parley-records.js';
import { presentRow } from './presented-row.js';
import { type RecordsParts, RowRules } from './row-rules.js';
import { atStore, atWriter } from './store-faults.js';

export interface WritesParts extends RecordsParts {
  readonly writer: RecordWriter;
}

/** The governed door to changing rows for one call. The order of its checks is that of docs/life-of-a-call.md. */
export class ParleyWrites implements GovernedWrites {
  private readonly rules: RowRules;

  constructor(private readonly parts: WritesParts) {
    this.rules = new RowRules(parts);
  }

  async create(className: unknown, fields: unknown): Promise<ParseRow> {
    const access = this.enter(className, 'create');
    const plan = await this.plan(access, fields, 'create');
    const { writer, operation } = this.parts;
    const row = await atWriter(operation, () => writer.create(access.className, plan.fields, operation));
    return this.present(row, access);
  }

  async update(className: unknown, objectId: unknown, fields: unknown): Promise<ParseRow> {
    const access = this.enter(className, 'update');
    const id = readId(objectId);
    const plan = await this.plan(access, fields, 'update');
    const limits = await this.ownRow(access, id, 'update');
    const { writer, operation } = this.parts;
    const row = await atWriter(operation, () =>
      writer.update(access.className, id, plan.fields, limits, operation),
    );
    if (!row) throw new Refused(refusals.objectNotFound(access.className, id));
    return this.present(row, access);
  }

  async delete(className: unknown, objectId: unknown): Promise<void> {
    const access = this.enter(className, 'delete');
    this.rules.tenant(access.className);
    const id = readId(objectId);
    const limits = await this.ownRow(access, id, 'delete');
    const { writer, operation } = this.parts;
    const deleted = await atWriter(operation, () => writer.delete(access.className, id, limits, operation));
    if (!deleted) throw new Refused(refusals.objectNotFound(access.className, id));
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
    const { tenant, where: visible } = await this.rules.predicate(className, { ...limits, byId: true });
    const where = allOf({ objectId }, visible);
    const [row] = await atStore(operation, () =>
      reader.find({ className, where, limit: 1, keys: tenant ? [tenant.field] : ['objectId'] }, operation),
    );
    if (!row) throw new Refused(refusals.objectNotFound(className, objectId));
    const foreign = tenant && foreignRow(tenant, row, className);
    if (foreign) throw new Refused(foreign);
    return (await this.rules.predicate(className, limits)).where;
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
    if (error instanceof Refused && error.refusal.code === 'access_denied') return [];
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
