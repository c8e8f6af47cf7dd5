import { type AuditQuery, AuditQueryError, type AuditTrail } from '#audit';
import { NotServed } from '#streaming';
import { limitOf, type Route } from '../route.js';

/** Query parameters of a search and the filters that they set. Others are refused. */
const ASKED = {
  from: 'from',
  to: 'to',
  type: 'type',
  agent: 'agent',
  tool: 'tool',
  principal: 'principal',
  tenant: 'tenant',
  outcome: 'outcome',
  gate: 'gate',
  code: 'code',
  correlation_id: 'correlationId',
  trace_id: 'traceId',
  cursor: 'cursor',
} as const satisfies Readonly<Record<string, keyof AuditQuery>>;
const OTHERS = new Set(['limit']);
const MAX_TEXT = 500;

/** Searches audit records, newest first. */
export function auditRoutes(trail: AuditTrail): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/audit',
      answer: async ({ query }) => {
        const asked = queryOf(query);
        const page = await trail.search(asked).catch((error: unknown) => {
          throw error instanceof AuditQueryError ? new NotServed(400, error.message) : error;
        });
        return { body: { reach: trail.reach, ...page } };
      },
    },
  ];
}

/** @throws NotServed for an unknown parameter: a misspelt filter must not match everything */
function queryOf(query: URLSearchParams): AuditQuery {
  const asked: Record<string, unknown> = { limit: limitOf(query) };
  for (const [name, value] of query) {
    if (OTHERS.has(name) || value === '') continue;
    if (!Object.hasOwn(ASKED, name)) throw new NotServed(400, `unknown filter ${name.slice(0, 40)}`);
    if (value.length > MAX_TEXT) throw new NotServed(400, `${name}: too long`);
    asked[ASKED[name as keyof typeof ASKED]] = value;
  }
  if (asked['outcome'] !== undefined && asked['outcome'] !== 'success' && asked['outcome'] !== 'failure')
    throw new NotServed(400, 'outcome must be success or failure');
  return asked as AuditQuery;
}
