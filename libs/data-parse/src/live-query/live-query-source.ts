import { createHash, randomUUID } from 'node:crypto';
import { catchError, concatMap, map, NEVER, type Observable, shareReplay, take } from 'rxjs';
import type { Agent } from '#core';
import { ChangeSource, type RowView, type SourceEvent, SourceRefused } from '#data';
import type { ClassSchema, FieldSchema, Where } from '#policy';
import { LiveQueryClient, type LiveQueryLog, type LiveQueryEvent } from './live-query-client.js';
import { type LiveQueryServer, socketUrlIssue } from './live-query-options.js';

const SCALARS: ReadonlySet<FieldSchema['type']> = new Set(['String', 'Number', 'Boolean']);

/**
 * Whether Parse LiveQuery evaluates a constraint as the database does. Its own matcher differs for dates, lists, geometry and
 * missing values. Where the results might differ, the constraint counts as unsupported.
 */
export function isCarried(where: Where, schema: ClassSchema | undefined): boolean {
  return Object.entries(where).every(([key, constraint]) => {
    if (key === '$and' || key === '$or') {
      return Array.isArray(constraint) && constraint.every((branch) => isCarried(branch as Where, schema));
    }
    const field = schema?.fields.get(key) ?? (key === 'objectId' ? ({ type: 'String' } as const) : undefined);
    return !key.startsWith('$') && field !== undefined && isCarriedConstraint(constraint, field);
  });
}

function isCarriedConstraint(constraint: unknown, field: FieldSchema): boolean {
  if (isScalar(constraint)) return SCALARS.has(field.type);
  if (typeof constraint !== 'object' || constraint === null) return false;
  if ('__type' in constraint) return constraint.__type === 'Pointer' && field.type === 'Pointer';
  if (!SCALARS.has(field.type)) return false;
  return Object.entries(constraint).every(([operator, operand]) => {
    switch (operator) {
      case '$eq':
      case '$ne':
        return isScalar(operand);
      case '$in':
      case '$nin':
        return Array.isArray(operand) && operand.every(isScalar);
      case '$exists':
        return typeof operand === 'boolean';
      default:
        return false;
    }
  });
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/**
 * Changes as Parse Server reports them: over one connection the rows that a session's user may read, over another connection,
 * with the master key, all rows. Assumed users and roles are not supported.
 */
export class LiveQuerySource extends ChangeSource {
  private readonly scoped: LiveQueryClient;
  private readonly admin: LiveQueryClient | null;
  private readonly honoured: Observable<unknown>;
  private warned = false;

  constructor(
    server: LiveQueryServer,
    private readonly log: LiveQueryLog,
  ) {
    super();
    const hasKey = server.masterKey !== null && server.masterKey.trim() !== '';
    this.scoped = new LiveQueryClient({ ...server, masterKey: null }, log);
    this.admin = hasKey ? new LiveQueryClient(server, log) : null;
    this.honoured = this.askAsAdmin();
  }

  /** The reason why a URL cannot be used; null when it can. */
  static urlFault(url: string): string | null {
    return socketUrlIssue(url);
  }

  get available(): boolean {
    return this.scoped.state !== 'closed';
  }

  channel(agent: Agent, view: RowView): string | null {
    if (!this.clientFor(agent) || view.ownersOnly || !view.declared) return null;
    // Parse Server knows neither: its class of that name, if there is one, is another class.
    if (view.schema?.storage === 'plain' || view.schema?.database !== undefined) return null;
    if (!isCarried(view.declared, view.schema)) return null;
    const { identity } = agent;
    const caller = identity.kind === 'sessionToken' ? `session ${identity.token}` : 'master';
    return `live ${digest(`${caller} ${view.className} ${JSON.stringify(view.declared)}`)}`;
  }

  news(agent: Agent, view: RowView): Observable<SourceEvent> {
    const client = this.clientFor(agent);
    if (!client || !view.declared) throw new SourceRefused('not carried');
    const { identity } = agent;
    const events = client
      .watch({
        className: view.className,
        where: view.declared,
        keys: ['objectId'],
        ...(identity.kind === 'sessionToken' && { sessionToken: identity.token }),
      })
      .pipe(map(toSourceEvents()));
    if (!client.isAdmin) return events;
    return this.honoured.pipe(concatMap(() => events));
  }

  close(): void {
    this.scoped.close();
    this.admin?.close();
  }

  /** The agent's own rights decide: an agent without the master key never uses the key of the process. */
  private clientFor({ identity, usesMasterKey }: Agent): LiveQueryClient | null {
    if (identity.kind === 'sessionToken') return identity.token === '' ? null : this.scoped;
    return usesMasterKey ? this.admin : null;
  }

  /**
   * A server whose LiveQuery was not given the master key accepts it without an error and then withholds rows. A query that
   * only the master key permits detects this.
   */
  private askAsAdmin(): Observable<unknown> {
    const { admin } = this;
    if (!admin) return NEVER;
    const question = { className: '_User', where: { email: randomUUID() }, keys: ['objectId'] };
    return admin.watch(question).pipe(
      take(1),
      catchError((error: unknown) => {
        if (!this.warned)
          this.log.warn('[LiveQuery] the master key is not honoured: give LiveQuery its keyPairs');
        this.warned = true;
        throw error;
      }),
      shareReplay(1),
    );
  }
}

function toSourceEvents(): (news: LiveQueryEvent) => SourceEvent {
  let subscribedBefore = false;
  return (news) => {
    if (news.op === 'lost') return { kind: 'gap' };
    if (news.op !== 'subscribed') {
      return { kind: 'change', objectId: news.objectId, created: news.op === 'create' };
    }
    const kind = subscribedBefore ? 'gap' : 'listening';
    subscribedBefore = true;
    return { kind };
  };
}

/** Tokens are credentials: the stored form cannot be used as one. */
function digest(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('base64');
}
