import type { AuditRecord } from '#audit';
import type { WorldPlace } from './world-databases.js';

export interface Request {
  readonly method: string;
  readonly params: Record<string, unknown>;
  /** Asked by the same person as one of that tenant. Default: of the tenant of the agent. */
  readonly tenant?: string;
  /** Asked of the agent whose writes are proposed. Default: of the one that is asked. */
  readonly proposes?: true;
  /** It waits for a person to decide, and the next request does not wait for it. */
  readonly waits?: true;
}

/** A request of this method lists the approvals that wait for the agent. */
export const APPROVALS = 'approvals';

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
