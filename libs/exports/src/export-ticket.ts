import { taskOwner, type TaskOwner } from '#dispatcher';
import type { Agent } from '#agent';
import { type ExportOrder, LINE_FORMATS } from '#tools';

/** What was promised, and to whom. Nothing of the data is in it. */
export interface ExportTicket {
  readonly owner: TaskOwner;
  readonly order: ExportOrder;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

export function ownedBy({ owner }: Pick<ExportTicket, 'owner'>, agent: Agent): boolean {
  const { principal, tenant, agent: name } = taskOwner(agent);
  return (
    agent.parent === null && owner.principal === principal && owner.tenant === tenant && owner.agent === name
  );
}

/** Another version of Parley may have written it: what lacks a member that is needed is no ticket. */
export function readTicket(value: Readonly<Record<string, unknown>>): ExportTicket | undefined {
  const { owner, order, expires } = value;
  if (!isObject(owner) || !isObject(order) || typeof expires !== 'number') return undefined;
  const { className, format, columns, limit } = order;
  const isOrder =
    typeof className === 'string' &&
    LINE_FORMATS.some((known) => known === format) &&
    Array.isArray(columns) &&
    (limit === null || typeof limit === 'number');
  return isOrder ? (value as unknown as ExportTicket) : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
