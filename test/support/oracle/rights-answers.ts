import { Agent, compileAgentDefinition, type Identity, Refused, sessionIdentity, McpRequest } from '#core';
import type { GovernedRecordsSource } from '#data';
import type { ParseServerProcess } from '../parse-server-process.js';
import type { Question } from './rights-questions.js';

type Row = Record<string, unknown>;
type ParseAnswer = Awaited<ReturnType<ParseServerProcess['call']>>;

/** What either side says: rows, a number, nothing there, or no. */
export type Answer =
  | { readonly kind: 'rows'; readonly rows: readonly Row[] }
  | { readonly kind: 'count'; readonly count: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'refused'; readonly why: string };

const FORBIDDEN = 119;
const NOT_FOUND = 101;

export async function askParse(
  parse: ParseServerProcess,
  session: string,
  question: Question,
): Promise<Answer> {
  const path = question.className === '_User' ? '/users' : `/classes/${question.className}`;
  if (question.kind === 'get') {
    const query = question.include ? { include: question.include } : {};
    return parseAnswer(await parse.call('GET', `${path}/${question.objectId}`, { session, query }), question);
  }
  const query = {
    where: question.where,
    ...(question.kind === 'count' ? { count: '1', limit: '0' } : { limit: '1000' }),
    ...(question.kind === 'find' && question.order && { order: question.order }),
    ...(question.kind === 'find' && question.include && { include: question.include }),
    ...(question.kind === 'find' && question.keys && { keys: question.keys.join(',') }),
  };
  return parseAnswer(await parse.call('GET', path, { session, query }), question);
}

function parseAnswer({ status, body }: ParseAnswer, question: Question): Answer {
  const { code } = body;
  if (code === FORBIDDEN) return { kind: 'refused', why: String(body['error']) };
  if (code === NOT_FOUND) {
    // A class that asks for a login says so with the same code as a missing row.
    return question.kind === 'get' ? { kind: 'missing' } : { kind: 'refused', why: String(body['error']) };
  }
  if (status !== 200) throw new Error(`Parse Server answered ${status} ${JSON.stringify(body)}`);
  if (question.kind === 'count') return { kind: 'count', count: Number(body['count']) };
  const rows = question.kind === 'get' ? [body] : (body['results'] as Row[]);
  return { kind: 'rows', rows: rows.map((row) => comparable(withoutLinks(row), question)) };
}

/** Parse Server chooses the URL of a column's file, also in rows that it includes; no row has it. */
function withoutLinks(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const { __type: type, url: _url, ...others } = (value ?? {}) as Row;
      if (type === 'File') return [name, { __type: type, ...others }];
      return [name, type === 'Object' ? withoutLinks(value as Row) : value];
    }),
  );
}

const DEFINITION = compileAgentDefinition('oracle', { rateLimit: 1_000_000 });

export async function askParley(
  source: GovernedRecordsSource,
  identity: Identity,
  question: Question,
): Promise<Answer> {
  const agent = new Agent({ definition: DEFINITION, identity, principal: 'oracle' });
  const { signal } = new AbortController();
  const records = source.for(new McpRequest(agent, { signal }));
  try {
    switch (question.kind) {
      case 'count':
        return {
          kind: 'count',
          count: await records.count(question.className, { where: question.where }),
        };
      case 'get': {
        const include = question.include ? [question.include] : undefined;
        const { rows } = await records.get(question.className, question.objectId, { include });
        return { kind: 'rows', rows: rows.map((row) => comparable(row, question)) };
      }
      case 'find': {
        const { where, order, include, keys } = question;
        const rows = await records.find(question.className, {
          where,
          limit: 1000,
          ...(order && { order }),
          ...(include && { include: [include] }),
          ...(keys && { keys }),
        });
        return { kind: 'rows', rows: rows.map((row) => comparable(row, question)) };
      }
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const { refusal } = error;
    if (refusal.message.startsWith('Parse error: Object not found')) return { kind: 'missing' };
    const kind = refusal.details?.kind;
    if (kind === 'clp_denied' || kind === 'protected_field_ref')
      return { kind: 'refused', why: refusal.message };
    throw new Error(`Parley answered ${JSON.stringify(refusal)}`, { cause: error });
  }
}

/** The rows an aggregation without stages of its own reaches: ids alone. */
export async function askAggregate(
  source: GovernedRecordsSource,
  identity: Identity,
  className: string,
): Promise<readonly Row[] | null> {
  const agent = new Agent({ definition: DEFINITION, identity, principal: 'oracle' });
  const { signal } = new AbortController();
  const records = source.for(new McpRequest(agent, { signal }));
  try {
    return (await records.aggregate(className, [{ $limit: 1000 }])).rows;
  } catch (error) {
    if (error instanceof Refused && error.refusal.details?.kind === 'clp_denied') return null;
    throw error;
  }
}

export const sessionOf = (token: string): Identity => sessionIdentity(token);

/**
 * Neither ACL maps, the caller's own token nor the bare pointers of includes that led nowhere are compared: Parley never shows the first
 * two and keeps the last, which the row itself shows without the include.
 */
function comparable(row: Row, question: Question): Row {
  const { ACL: _, sessionToken: __, ...rest } = row;
  const include = question.kind === 'count' ? undefined : question.include;
  return include ? withoutBare(rest, include.split('.')) : rest;
}

function withoutBare(row: Row, [field, ...deeper]: readonly string[]): Row {
  if (field === undefined || !(field in row)) return row;
  const { [field]: value, ...others } = row;
  const included = value as Row;
  if (included['__type'] === 'Pointer') return others;
  const { ACL: _, ...inner } = included;
  return { ...others, [field]: withoutBare(inner, deeper) };
}
