import { orThrow, type Refusal, refusals, Refused, refuse } from '#core';
import {
  type AgentScope,
  directWriteGate,
  type FieldSchema,
  isRefusal,
  readNewClassFields,
  schemaChangeGate,
  tenantBinding,
} from '#policy';
import type { GovernedClassWrites } from '../governed-access.js';
import { StoreError } from '../record-store.js';
import type { SchemaCatalogue, SchemaWriter } from '../schema-store.js';
import { type ClassGate, type GovernedCall, pointerGate } from './governed-call.js';
import { RowRules } from './row-rules.js';
import { atStore } from './store-refusals.js';

interface GovernedClassWriteCall extends GovernedCall {
  readonly schemaWriter: SchemaWriter;
  readonly catalogue: SchemaCatalogue;
}

/** Governed creation and deletion of classes, for one call. */
export class ParleyClassWrites implements GovernedClassWrites {
  constructor(private readonly call: GovernedClassWriteCall) {}

  async createClass(given: unknown, fields?: unknown): Promise<ReadonlyMap<string, FieldSchema>> {
    const className = admitChangedClass(this.call, given);
    const { scope, operation, schemaWriter } = this.call;
    const columns = readNewClassFields(className, fields, pointerGate(this.call));
    if (scope.schemas.get(className)) throw exists(className);
    await atStore(operation, async () => {
      try {
        await schemaWriter.createClass({ className, fields: columns }, operation);
      } catch (error) {
        throw error instanceof StoreError && error.code === 'duplicate' ? exists(className) : error;
      }
    });
    await this.readClassesAgain();
    return columns;
  }

  async deleteClass(given: unknown): Promise<void> {
    const { operation, schemaWriter } = this.call;
    const className = admitDeletedClass(this.call, given);
    // Whether the class is empty would reveal rows that a filter of the agent leaves out.
    if (!(await new RowRules(this.call).readsEveryRow(className))) throw refuse.holdsOthersRows(className);
    const outcome = await atStore(operation, () => schemaWriter.deleteClass(className, operation));
    if (outcome === 'not_empty')
      throw refuse.invalidArgument(`class '${className}' still has objects; delete them first`);
    if (outcome === 'absent') throw refuse.unknownClass(className, []);
    await this.readClassesAgain();
  }

  /** Clients hear of the change before the answer, whoever calls next. What cannot be read now is read by the next call. */
  private async readClassesAgain(): Promise<void> {
    await this.call.catalogue.snapshot().catch(() => undefined);
  }
}

/** @returns the canonical name. @throws Refused for a class that the agent may neither make nor remove */
export function admitChangedClass({ scope, agent }: ClassGate, given: unknown): string {
  orThrow(directWriteGate(agent));
  const admitted = scope.admit(agent, given);
  if (typeof admitted !== 'string') throw new Refused(admitted);
  const gate =
    scope.refuseReadOnly(admitted) ?? schemaChangeGate(agent, admitted) ?? findListedGate(scope, admitted);
  if (gate) throw new Refused(gate);
  return admitted;
}

/** The same for a class that is removed, whether it has objects or not. @throws Refused */
export function admitDeletedClass(call: ClassGate, given: unknown): string {
  const className = admitChangedClass(call, given);
  const { scope, agent } = call;
  const entered = scope.enter(agent, className, null);
  if (isRefusal(entered)) throw new Refused(entered);
  // Whether the class is empty would reveal rows of other tenants.
  if (tenantBinding(agent, scope.classPolicy(className)) !== null) throw createSharedByTenants(className);
  return className;
}

/**
 * The policy lists the classes that exist where it refuses others, and those that Parse does not store: an agent can neither
 * make one nor remove one.
 */
function findListedGate({ policy }: AgentScope, className: string): Refusal | null {
  const declared = policy.classes.get(className);
  const isListedOnly = declared === undefined && policy.switches.unlistedClasses === 'refuse';
  if (!isListedOnly && !declared?.plain) return null;
  return refusals.invalidArgument(
    isListedOnly
      ? `the policy does not list class '${className}': an operator lists it under policy.classes before it is made or removed`
      : `class '${className}' cannot be made or removed here: its database is another program's`,
    'class',
  );
}

function exists(className: string): Refused {
  return refuse.invalidArgument(`class '${className}' exists already`);
}

function createSharedByTenants(className: string): Refused {
  return refuse.accessDenied(
    'tenant',
    `Class '${className}' is shared by tenants: only an agent that its scope does not bind may remove it`,
    'tenant_scope',
  );
}
