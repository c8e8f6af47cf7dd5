import type { AuditRecord } from '#audit';
import type { WorldPlace } from './world-databases.js';

export interface Request {
  readonly method: string;
  readonly params: Record<string, unknown>;
  /** Asked by the same person as one of that tenant. Default: of the tenant of the agent. */
  readonly tenant?: string;
  /** Asked by another agent, which sees what it may: the answer is not compared. Default: by the one that is asked. */
  readonly by?: 'proposer' | 'chief';
  /** It waits for a person to decide, and the next request does not wait for it. */
  readonly waits?: true;
  /** The params in the world of marks, where another agent writes what the one that is asked may not see. Default: `params`. */
  readonly marked?: Record<string, unknown>;
}

/** A request of this method lists the approvals that wait for the agent. */
export const APPROVALS = 'approvals';

/** What people do with change sets, each as the method of a request; a set is named as `named-sets` tells. */
export const OPERATIONS = {
  /** Shows the case of a set to the agent as its approver. */
  case: 'case of a set',
  /** Approves what waits, and is answered as what waited. */
  approve: 'approval by another person',
  list: 'sets of an operator',
  show: 'set of an operator',
  preview: 'preview of an undo',
  undo: 'undo by an operator',
} as const;

/** What one request led to: the reply as it is sent, and what was written down. */
export interface Answer {
  readonly reply: string;
  readonly audit: string;
}

/** A service with one agent, however it is reached. */
export interface AskedService {
  ask(request: Request): Promise<Answer>;
  close(): Promise<void>;
}

/** The database of one world. */
export interface WorldDatabase extends WorldPlace {
  /** The endpoint that makes vectors of texts. */
  readonly embeddings?: string;
}

/** Writes are open to agents that may make them. */
export const GATES = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
};

const BEGAN = Date.now() - 1000;

/** Without the times of writes, which differ between any two: worlds are made of other years. */
export function withoutToday(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => {
    const at = Date.parse(time);
    return at >= BEGAN && at <= Date.now() ? '<now>' : time;
  });
}

/**
 * Without what differs between any two calls: when, how long, and which agent object; and without what the operator alone is
 * told of an id that leads to no row of the tenant: whether there is one.
 */
export function settledAudit(record: AuditRecord): object {
  const {
    at: _,
    duration_ms: __,
    agent_id: ___,
    parent_agent_id: ____,
    correlation_id: _____,
    database_ms: ______,
    cause,
    ...rest
  } = record as AuditRecord & { cause?: unknown };
  const tellsOfRows = 'denial_kind' in rest && rest.denial_kind === 'tenant_scope';
  return { ...rest, ...(cause !== undefined && !tellsOfRows && { cause }) };
}
