import {
  type AdmissionRequest,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  type AuditEvent,
  type AuditRecord,
  AuditSink,
  Authenticator,
  type ClassSchema,
  ClassSchemas,
  type FacetCounts,
  type FieldSchema,
  type FindQuery,
  openSharedState,
  openTaskQueue,
  type ParseRow,
  PrincipalDirectory,
  type QueryPlan,
  type RateLimit,
  RateLimiters,
  type RateUsage,
  type RateVerdict,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
  type SearchHit,
  SlidingRateLimiter,
  Unauthorized,
} from '@parley/server';
import { SECRET } from './seeds.js';

/** What was asked of a binding, in the order it came. */
export const asked: string[] = [];
const told = <T>(name: string, answer: T): T => {
  asked.push(name);
  return answer;
};

const post = (objectId: string, orgId: string, more: object = {}): ParseRow => ({
  objectId,
  title: `Of ${orgId}`,
  status: 'live',
  orgId,
  archived: false,
  internalNote: SECRET,
  _hashed_password: SECRET,
  author: { __type: 'Object', className: 'Author', objectId: 'a9', name: 'Ann', ssn: SECRET, orgId },
  ...more,
});

/** Whatever is asked, everything is answered: the rows of all tenants with all of their columns. */
class CarelessReader extends RecordReader {
  find({ className }: FindQuery): Promise<ParseRow[]> {
    const rows = [post('x1', 'acme'), post('x2', 'globex', { title: SECRET })];
    return Promise.resolve(told('RecordReader', className === 'Post' ? rows : []));
  }
  count(): Promise<number> {
    return Promise.resolve(told('RecordReader', 7));
  }
  aggregate(): Promise<ParseRow[]> {
    return Promise.resolve(told('RecordReader', []));
  }
  related(): Promise<string[]> {
    return Promise.resolve(told('RecordReader', []));
  }
  explain(): Promise<QueryPlan> {
    return Promise.resolve(told('RecordReader', {}));
  }
}

class NotedWriter extends RecordWriter {
  create(_className: string, fields: ParseRow): Promise<ParseRow> {
    return Promise.resolve(told('RecordWriter', { ...fields, objectId: 'w1', internalNote: SECRET }));
  }
  update(): Promise<ParseRow | null> {
    return Promise.resolve(told('RecordWriter', null));
  }
  delete(): Promise<boolean> {
    return Promise.resolve(told('RecordWriter', false));
  }
}

class OneHit extends RecordSearcher {
  text(): Promise<SearchHit[]> {
    return Promise.resolve(told('RecordSearcher', [{ row: post('x1', 'acme'), score: 1, highlights: [] }]));
  }
  facets(): Promise<FacetCounts> {
    return Promise.resolve(told('RecordSearcher', { total: 0, facets: new Map() }));
  }
  nearest(): Promise<SearchHit[]> {
    return Promise.resolve(told('RecordSearcher', []));
  }
}

const text = { type: 'String' } as const;
const classOf = (className: string, fields: Readonly<Record<string, FieldSchema>>): ClassSchema => ({
  className,
  fields: new Map<string, FieldSchema>([
    ['objectId', text],
    ['createdAt', { type: 'Date' }],
    ['updatedAt', { type: 'Date' }],
    ['ACL', { type: 'ACL' }],
    ...Object.entries(fields),
  ]),
  indexes: [],
  classLevelPermissions: null,
});

/** A class that no database has, beside those of the newsroom. */
class OwnCatalogue extends SchemaCatalogue {
  private readonly schemas = new ClassSchemas([
    classOf('Ledger', { entry: text }),
    classOf('Contract', { clause: text }),
    classOf('Author', { name: text, ssn: text, orgId: text, bio: text, favourites: text }),
    classOf('Post', {
      title: text,
      status: text,
      orgId: text,
      archived: { type: 'Boolean' },
      internalNote: text,
      body: text,
      likes: { type: 'Number' },
      publishedAt: { type: 'Date' },
      tags: { type: 'Array' },
      contract: { type: 'Pointer', targetClass: 'Contract' },
      author: { type: 'Pointer', targetClass: 'Author' },
    }),
  ]);

  snapshot() {
    return Promise.resolve(told('SchemaCatalogue', this.schemas));
  }
  indexesOf() {
    return Promise.resolve([]);
  }
  invalidate(): void {}
}

class OneSession extends PrincipalDirectory {
  ownerOfSession(token: string) {
    const owner = token === 'r:good' ? { userId: 'u9', expiresAt: null } : null;
    return Promise.resolve(told('PrincipalDirectory', owner));
  }
  rolesOfUser() {
    return Promise.resolve([]);
  }
  rolesOfRole() {
    return Promise.resolve(null);
  }
}

class ByHeader extends Authenticator {
  override readonly challenge = 'Desk realm="news"';

  override authenticate(request: AdmissionRequest) {
    asked.push('Authenticator');
    const { 'x-user': user, 'x-session': session } = request.headers;
    if (typeof user !== 'string') return Promise.reject(new Unauthorized());
    const identity = typeof session === 'string' ? { session } : undefined;
    return Promise.resolve(request.admit({ agent: user, principal: user, ...(identity && { identity }) }));
  }
}

class NotedSink extends AuditSink {
  override record(_: AuditRecord): void {
    asked.push('AuditSink');
  }
  override recordEvent(_: AuditEvent): void {
    asked.push('AuditSink');
  }
}

/** Says what the call asks to hear. */
class AskedApprover extends Approver {
  review({ args }: ApprovalRequest): Promise<ApprovalDecision> {
    asked.push('Approver');
    const { say } = args as { say?: string };
    if (say === 'throw') throw new Error(SECRET);
    if (say === 'nothing') return Promise.resolve(undefined as never);
    if (say === 'perhaps') return Promise.resolve({ outcome: 'perhaps' } as never);
    if (say === 'deny') return Promise.resolve({ outcome: 'deny', reason: 'not today' });
    return Promise.resolve({ outcome: 'approve' });
  }
}

class OwnLimiter extends SlidingRateLimiter {
  constructor(
    private readonly name: string,
    rate: RateLimit,
  ) {
    super(rate);
  }
  check(key: string): Promise<RateVerdict | null> {
    asked.push('RateLimiters');
    if (key === 'broken') throw new Error(SECRET);
    return Promise.resolve(key === 'spent' ? this.refusal(30) : null);
  }
  usage(): Promise<RateUsage> {
    return Promise.resolve(this.usageOf(0, null));
  }
  reset(): Promise<void> {
    return Promise.resolve();
  }
}

class OwnLimiters extends RateLimiters {
  limiter(name: string, rate: RateLimit): SlidingRateLimiter {
    return new OwnLimiter(name, rate);
  }
}

const log = { warn: () => undefined };

/** The default itself, with a note of what is asked of it and of its parts. */
function noted<T extends object>(name: string, of: T): T {
  return new Proxy(of, {
    get: (target, key) => {
      asked.push(`${name}.${String(key)}`);
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value === 'function') return value.bind(target) as unknown;
      return value !== null && typeof value === 'object' ? noted(`${name}.${String(key)}`, value) : value;
    },
  });
}

export const BINDINGS = {
  Authenticator: () => new ByHeader(),
  AuditSink: () => new NotedSink(),
  Approver: () => new AskedApprover(),
  RateLimiters: () => new OwnLimiters(),
  RecordReader: () => new CarelessReader(),
  RecordWriter: () => new NotedWriter(),
  RecordSearcher: () => new OneHit(),
  SchemaCatalogue: () => new OwnCatalogue(),
  PrincipalDirectory: () => new OneSession(),
  TaskQueue: async () => noted('TaskQueue', await openTaskQueue({ url: null, log })),
  SharedState: async () => noted('SharedState', await openSharedState({ url: null, log })),
} as const;
