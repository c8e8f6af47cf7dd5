import { isObjectId, Refused, refusals } from '#agent';
import {
  type ClassAccess,
  foreignRow,
  isRefusal,
  isTenantRefusal,
  planWrite,
  rawWriteGate,
  type TenantBinding,
  tenantBinding,
  type Where,
  type WritePlan,
} from '#policy';
import type { GovernedWrites } from '../governed-writes.js';
import type { ParseRow, RecordWriter } from '../record-store.js';
import { assertClassPermits, type ClassOperation } from './class-permission.js';
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
    const access = await this.enter(className, 'create');
    const plan = await this.plan(access, fields, 'create');
    const { writer, operation } = this.parts;
    const row = await atWriter(operation, () => writer.create(access.className, plan.fields, operation));
    return this.present(row, access);
  }

  async update(className: unknown, objectId: unknown, fields: unknown): Promise<ParseRow> {
    const access = await this.enter(className, 'update');
    const id = readId(objectId);
    const plan = await this.plan(access, fields, 'update');
    const limits = await this.ownRow(access, id);
    const { writer, operation } = this.parts;
    const row = await atWriter(operation, () =>
      writer.update(access.className, id, plan.fields, limits, operation),
    );
    if (!row) throw new Refused(refusals.objectNotFound(access.className, id));
    return this.present(row, access);
  }

  async delete(className: unknown, objectId: unknown): Promise<void> {
    const access = await this.enter(className, 'delete');
    this.tenant(access);
    const id = readId(objectId);
    const limits = await this.ownRow(access, id);
    const { writer, operation } = this.parts;
    const deleted = await atWriter(operation, () => writer.delete(access.className, id, limits, operation));
    if (!deleted) throw new Refused(refusals.objectNotFound(access.className, id));
  }

  private async enter(className: unknown, permission: ClassOperation): Promise<ClassAccess> {
    const { scope, agent } = this.parts;
    const access = scope.enter(agent, className);
    if (isRefusal(access)) throw new Refused(access);
    const system = rawWriteGate(agent, access.className);
    if (system) throw new Refused(system);
    await assertClassPermits(this.parts, access, permission);
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
      tenant: this.tenant(access),
      judgeClass: (className) => {
        const judged = reach.reach(className, 'pointer');
        if (isRefusal(judged)) throw new Refused(judged);
      },
    });
    if (plan.added.size > 0) await assertClassPermits(this.parts, access, 'addField');
    return plan;
  }

  private tenant(access: ClassAccess): TenantBinding | null {
    const { scope, agent } = this.parts;
    const tenant = tenantBinding(agent, scope.classPolicy(access.className));
    if (isTenantRefusal(tenant)) throw new Refused(tenant);
    return tenant;
  }

  /**
   * The stored row must be one that exists for this agent, and its tenant's own. What was verified is also the condition
   * of the write itself: a row that changed hands in between stays as it is.
   */
  private async ownRow(access: ClassAccess, objectId: string): Promise<Where> {
    const { reader, operation } = this.parts;
    const { className } = access;
    const { tenant, where: visible } = await this.rules.predicate(className, {
      canonical: false,
      byId: true,
    });
    const where: Where = Object.keys(visible).length > 0 ? { $and: [{ objectId }, visible] } : { objectId };
    const [row] = await atStore(operation, () =>
      reader.find({ className, where, limit: 1, keys: tenant ? [tenant.field] : ['objectId'] }, operation),
    );
    if (!row) throw new Refused(refusals.objectNotFound(className, objectId));
    const foreign = tenant && foreignRow(tenant, row, className);
    if (foreign) throw new Refused(foreign);
    return (await this.rules.predicate(className, { canonical: false })).where;
  }

  private present(row: ParseRow, access: ClassAccess): ParseRow {
    return presentRow(row, access, this.parts.scope);
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
