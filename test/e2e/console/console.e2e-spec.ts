import { request as plainRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000 };
const AGENTS = {
  chief: { ...free, permissions: 'admin', tenantId: 'acme' },
  watcher: { ...free },
  writer: { ...free, permissions: 'write', tenantId: 'acme' },
  person: { ...free },
};
const KEYS = { chief: 'key-of-chief-0000', watcher: 'key-of-watcher-0000', writer: 'key-of-writer-0000' };
/** A good credential that no cookie holds. */
const LONG_KEY = 'k'.repeat(3_000);
type AgentName = keyof typeof KEYS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': KEYS[agent] });
const CHANGING = { 'X-Parley-Console': '1', 'Content-Type': 'application/json' };

let redis: RedisServer;
let database: Database;
let one: Service;
let two: Service;
beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  const start = () =>
    startService({
      config: {
        agents: AGENTS,
        auth: [
          ...Object.entries(KEYS).map(([agent, apiKey]) => ({ apiKey, agent })),
          { apiKey: LONG_KEY, agent: 'watcher' },
          { parseSession: true, agent: 'person' },
        ],
        policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
        database: { uri: database.uri, name: 'parley' },
        redis: { url: redis.url },
        approvals: { mode: 'desk', approvers: ['chief'] },
        console: { operators: ['chief', 'watcher', 'person'] },
      },
      env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    });
  [one, two] = await Promise.all([start(), start()]);
}, 120_000);
afterAll(async () => {
  await Promise.all([one.stop(), two.stop()]);
  await Promise.all([database.stop(), redis.stop()]);
});

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

async function ask(
  service: Service,
  verb: string,
  path: string,
  headers: Record<string, string> = {},
  body?: unknown,
): Promise<Seen> {
  const response = await fetch(`${service.origin}/console/${path}`, {
    method: verb,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text), headers: response.headers };
}

const cookieOf = ({ headers }: Seen) => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
const signIn = (service: Service, credential: object) =>
  ask(service, 'POST', 'session', CHANGING, credential);

const ROUTES = (
  'session api/live api/overview api/approvals api/approvals/x api/agents api/agents/watcher/classes api/policy api/policy/agents api/policy/agents/watcher api/policy/changes api/policy/effective api/metadata api/audit ' +
  'api/tasks api/exports api/status api/unknown'
)
  .split(' ')
  .map((path) => ['GET', path] as const);
const CHANGES = [
  ['POST', 'api/approvals/x'],
  ['POST', 'api/explain'],
  ['POST', 'api/policy/trial'],
] as const;

describe('the console over HTTP', () => {
  it.each([...ROUTES, ...CHANGES])('knows nobody without a credential: %s %s', async (verb, path) => {
    const headers = verb === 'GET' ? {} : CHANGING;
    const body = verb === 'GET' ? undefined : {};
    expect((await ask(one, verb, path, headers, body)).status).toBe(401);
    expect((await ask(one, verb, path, { ...headers, 'X-MCP-API-Key': 'wrong' }, body)).status).toBe(401);
    expect((await ask(one, verb, path, { ...headers, ...as('writer') }, body)).status).toBe(403);
    const elsewhere = { ...headers, ...as('chief'), Origin: 'https://evil.example' };
    expect((await ask(one, verb, path, elsewhere, body)).status).toBe(403);
    expect(
      (await ask(one, verb, path, { ...headers, ...as('chief'), 'Sec-Fetch-Site': 'cross-site' }, body))
        .status,
    ).toBe(403);
  });

  it.each([...CHANGES, ['POST', 'session'], ['DELETE', 'session']] as const)(
    'lets nobody change anything without its header: %s %s',
    async (verb, path) => {
      const headers = { ...as('chief'), 'Content-Type': 'application/json' };
      expect((await ask(one, verb, path, headers, {})).status).toBe(403);
    },
  );

  it('answers operators what there is, and says what there is not', async () => {
    for (const [verb, path] of ROUTES.filter(
      ([, route]) => !/live|approvals\/x|effective|unknown/.test(route),
    ))
      expect([path, (await ask(one, verb, path, as('chief'))).status]).toEqual([path, 200]);
    expect((await ask(one, 'GET', 'api/unknown', as('chief'))).status).toBe(404);
    expect((await ask(one, 'GET', 'api/approvals/x', as('chief'))).status).toBe(404);
    const wrong = await ask(one, 'DELETE', 'api/policy', { ...as('chief'), ...CHANGING });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET']);
  });

  it('refuses what cannot be asked, in words', async () => {
    const explain = (body: unknown) => ask(one, 'POST', 'api/explain', { ...as('chief'), ...CHANGING }, body);
    for (const body of [
      {},
      { agent: 'chief' },
      { agent: 'chief', tool: 't', args: [] },
      { agent: 'chief', tool: 't', args: {}, user: 1 },
    ])
      expect((await explain(body)).status).toBe(400);
    expect((await explain({ agent: 'nobody', tool: 't', args: {} })).status).toBe(404);
    expect((await ask(one, 'GET', 'api/audit?agnet=chief', as('chief'))).status).toBe(400);
    expect((await ask(one, 'GET', 'api/audit?cursor=x', as('chief'))).status).toBe(400);
    expect((await ask(one, 'GET', 'api/audit?format=xml', as('chief'))).status).toBe(400);
    expect((await ask(one, 'GET', 'api/overview?window=1y', as('chief'))).status).toBe(400);
    for (const body of [
      {},
      { key: 1 },
      { key: 'a b' },
      { key: 'a\r\nb' },
      { key: 'x'.repeat(5_000) },
      { session: '' },
    ])
      expect((await signIn(one, body)).status).toBe(400);
  });

  it('signs nobody in whose credential no cookie holds, says so, and serves it as a header', async () => {
    const signedIn = async () => {
      const { body } = await ask(one, 'GET', 'api/audit?type=operator_action&limit=200', as('chief'));
      return JSON.stringify(body).split('console.sign_in').length;
    };
    const before = await signedIn();
    const long = await signIn(one, { key: LONG_KEY });
    expect([long.status, long.body, long.headers.get('set-cookie')]).toEqual([
      400,
      { error: 'this credential is too long for a browser session: send it as a header' },
      null,
    ]);
    expect((await ask(one, 'GET', 'api/status', { 'X-MCP-API-Key': LONG_KEY })).status).toBe(200);
    expect(await signedIn()).toBe(before);
  });

  it('is not what a rebound name is taken to', async () => {
    const { hostname, port } = new URL(one.origin);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = { hostname, port, path: '/console', headers: { Host: 'evil.example' } };
      plainRequest(options, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  it('sends nothing without the headers that keep a browser to it', async () => {
    const answers = [
      await fetch(`${one.origin}/console`),
      await fetch(`${one.origin}/console/api/audit`, { headers: as('chief') }),
    ];
    for (const { headers } of answers) {
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/,
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
    const asset =
      /\/console\/assets\/[^"]+\.js/.exec(await (await fetch(`${one.origin}/console`)).text())?.[0] ?? '';
    const script = await fetch(`${two.origin}${asset}`);
    expect([script.status, script.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ]);
    expect(script.headers.get('cache-control')).toContain('immutable');
    for (const path of ['assets/x/main.js', 'assets/../../package.json', 'assets/x/..%2f..%2fpackage.json'])
      expect((await fetch(`${one.origin}/console/${path}`)).status).not.toBe(200);
  });
});

describe('the policy in the console', () => {
  it('shows what an agent sees as its calls are decided, and no value of a filter', async () => {
    const { body, text } = await ask(one, 'GET', 'api/policy/agents/writer', as('chief'));
    const classes = body['classes'] as {
      name: string;
      visible: boolean;
      access: string;
      tools: string[];
      masks: unknown[];
      limits: { origin: string; fields: string[] }[];
    }[];
    expect(classes.find(({ name }) => name === 'Post')).toMatchObject({ visible: true });
    expect(classes.find(({ name }) => name === 'Contract')).toMatchObject({ visible: false, access: 'none' });
    for (const { access, masks, limits } of classes)
      if (masks.length > 0 || limits.length > 0) expect(access).not.toBe('open');
    expect(classes.flatMap(({ limits }) => limits).some(({ origin }) => origin === 'tenant')).toBe(true);
    expect(JSON.stringify(classes)).not.toContain('acme');
    expect(text).not.toContain(SECRET);
  });

  it('pages through classes, and knows no agent that there is not', async () => {
    const first = await ask(one, 'GET', 'api/policy/agents/writer?limit=1', as('chief'));
    expect(first.body['classes']).toHaveLength(1);
    const next = await ask(
      one,
      'GET',
      `api/policy/agents/writer?limit=1&after=${String(first.body['next'])}`,
      as('chief'),
    );
    expect(next.body['classes']).not.toEqual(first.body['classes']);
    for (const path of [
      'api/policy/agents/toString',
      'api/agents/nobody/classes',
      'api/policy/changes?from=9',
    ])
      expect((await ask(one, 'GET', path, as('chief'))).status).toBe(404);
    expect((await ask(one, 'GET', 'api/policy/changes?from=x', as('chief'))).status).toBe(400);
    const listed = await ask(one, 'GET', 'api/agents/writer/classes', as('chief'));
    expect(listed.body['classes']).toContainEqual(expect.objectContaining({ name: 'Post' }));
    expect(listed.text).not.toContain('Contract');
  });

  it('calls no class open that masks, tenants or a field list limit', async () => {
    const { body } = await ask(one, 'GET', 'api/policy', as('chief'));
    const classes = body['classes'] as {
      access: string;
      tenant_field: unknown;
      masks: unknown[];
      fields: unknown;
    }[];
    const limited = classes.filter(
      ({ tenant_field, masks, fields }) => tenant_field !== null || masks.length > 0 || fields !== null,
    );
    expect(limited.length).toBeGreaterThan(0);
    expect(limited.filter(({ access }) => access === 'open')).toEqual([]);
  });

  it('is tried with the key of masks that is served, and looks up no variable, no file and no code', async () => {
    const tried = (file: string, tests?: string) =>
      ask(one, 'POST', 'api/policy/trial', { ...as('chief'), ...CHANGING }, { file, tests });
    const faultsOf = ({ body }: Seen) =>
      (body['faults'] as { at?: string; path: string }[]).map(({ at, path }) => `${at} ${path}`);
    const refused = await tried(
      'plugins: [./evil.mjs]\ndatabase: { uri: "mongodb://elsewhere" }\npolicy:\n  classes:\n    Post:\n      description: "${PATH}"\n      fields: ["${file:/etc/passwd}"]\n',
    );
    expect(faultsOf(refused)).toEqual([
      'tried:6:7 policy.classes.Post.description',
      'tried:7:16 policy.classes.Post.fields.0',
    ]);
    expect(refused.text).not.toMatch(/root:|\/usr\/bin/);
    expect(faultsOf(await tried('policy: { classes: { Post: { feilds: [] } } }'))).toEqual([
      'tried:1:30 policy.classes.Post.feilds',
    ]);
    expect(faultsOf(await tried('nothing: here'))).toEqual(['tried ']);
    const open = await tried('policy: { unlistedClasses: allow, classes: { Contract: {} } }');
    expect(open.body).toMatchObject({ faults: [], widens: true });
    expect((await ask(one, 'GET', 'api/policy/changes', as('chief'))).body).toMatchObject({ to: 1 });
  });

  it('has nothing to compare while one version was served', async () => {
    const { body } = await ask(one, 'GET', 'api/policy/changes', as('chief'));
    expect(body).toMatchObject({ from: null, to: 1, widens: false, changes: [], cut: 0 });
  });
});

describe('the overview and the records of the console', () => {
  it('sum the calls of all replicas, by agent, class and gate', async () => {
    await Promise.all([
      callTool(one, 'query_class', { class_name: 'Post' }, as('watcher')),
      callTool(two, 'query_class', { class_name: 'Post' }, as('watcher')),
      callTool(two, 'query_class', { class_name: 'Contract' }, as('watcher')),
    ]);
    await vi.waitFor(
      async () => {
        const { body } = await ask(one, 'GET', 'api/overview?window=24h', as('chief'));
        expect(body).toMatchObject({
          scope: 'replicas',
          degraded: false,
          counted_since: expect.any(String),
          waiting: { approvals: expect.any(Number) },
        });
        expect(body['classes']).toContainEqual({ name: 'Contract', calls: 1, refused: 1 });
        expect(body['gates']).toContainEqual({ name: 'class', refused: 1 });
        expect(body['buckets']).toHaveLength(96);
      },
      { timeout: 20_000, interval: 500 },
    );
  });

  it('are found by class, and given as a file', async () => {
    const found = await ask(two, 'GET', 'api/audit?class=Contract', as('chief'));
    expect(found.body).toMatchObject({
      reach: 'recent',
      searched: { store: 'memory', scope: 'replica', cut: null },
      entries: [{ class_name: 'Contract', gate: 'class' }],
    });
    const file = await fetch(`${two.origin}/console/api/audit?class=Contract&format=csv`, {
      headers: as('chief'),
    });
    expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(file.headers.get('content-disposition')).toMatch(
      /^attachment; filename="parley-audit-\d{8}T\d{6}Z\.csv"$/,
    );
    const lines = (await file.text()).split('\r\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toContain('query_class,Contract,');
  });
});

describe('a session of the console', () => {
  it('opened on one replica holds on another, and signed out there is over on all', async () => {
    const opened = await signIn(one, { key: KEYS.chief });
    expect(opened.body).toMatchObject({ signed_in: true, agent: 'chief', approver: true });
    const cookie = cookieOf(opened);
    expect(opened.headers.get('set-cookie')).toMatch(/Path=\/console; HttpOnly; SameSite=Strict/);
    expect(Buffer.from(cookie, 'base64url').toString('latin1')).not.toContain(KEYS.chief);
    // It says who it is by the name it was made for, and each replica here has a name of its own.
    const host = new URL(one.origin).host;
    const onTwo = (verb: string, path: string) => hosted(two, verb, path, { Cookie: cookie, Host: host });
    expect(await onTwo('GET', 'api/status')).toBe(200);
    expect((await ask(two, 'GET', 'api/status', { Cookie: cookie })).status).toBe(401);
    expect(await onTwo('DELETE', 'session')).toBe(200);
    expect((await ask(one, 'GET', 'api/status', { Cookie: cookie })).status).toBe(401);
  });

  it('is opened with a Parse session as well, and by nobody who is no operator', async () => {
    const person = await signIn(one, { session: `r:${SECRET}` });
    expect(person.body).toMatchObject({ agent: 'person', principal: 'user:u1' });
    expect((await ask(one, 'GET', 'api/tasks', { Cookie: cookieOf(person) })).status).toBe(200);
    expect((await signIn(one, { key: KEYS.writer })).status).toBe(403);
    expect((await signIn(one, { session: 'r:ghost' })).status).toBe(401);
  });

  it('is renewed by asking for it, and changes nothing without the header', async () => {
    const opened = await signIn(one, { key: KEYS.watcher });
    expect([opened.status, opened.body]).toEqual([200, expect.objectContaining({ agent: 'watcher' })]);
    const cookie = cookieOf(opened);
    const renewed = await ask(one, 'GET', 'session', { Cookie: cookie });
    expect([renewed.status, renewed.body]).toEqual([200, opened.body]);
    expect(cookieOf(renewed)).not.toBe(cookie);
    expect(
      (await ask(one, 'POST', 'api/explain', { Cookie: cookie, 'Content-Type': 'application/json' }, {}))
        .status,
    ).toBe(403);
  });
});

async function hosted(
  service: Service,
  verb: string,
  path: string,
  headers: Record<string, string>,
): Promise<number> {
  const { hostname, port } = new URL(service.origin);
  return new Promise((resolve, reject) => {
    plainRequest(
      {
        hostname,
        port,
        method: verb,
        path: `/console/${path}`,
        headers: { ...headers, 'X-Parley-Console': '1' },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    )
      .on('error', reject)
      .end();
  });
}

describe('what operators see', () => {
  async function watch(service: Service, agent: AgentName) {
    const gone = new AbortController();
    const response = await fetch(`${service.origin}/console/api/live`, {
      headers: as(agent),
      signal: gone.signal,
    });
    let text = '';
    void (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    const shows = async (wanted: string) => {
      while (!text.includes(wanted)) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    return { response, shows, text: () => text, close: () => gone.abort() };
  }

  it('are calls and refusals with their gate, of every replica, without a value', async () => {
    const stream = await watch(one, 'watcher');
    await stream.shows('event: watching');
    // The other replica publishes from the moment it learns that somebody watches.
    let calling = true;
    const calls = (async () => {
      while (calling) {
        await callTool(
          two,
          'query_class',
          { class_name: 'Contract', where: { clause: 'v4lue-asked-for' } },
          as('writer'),
        );
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    await stream.shows('"gate":"class"');
    calling = false;
    await calls;
    expect(stream.text()).toContain('"denial_kind":"hidden_class"');
    expect(stream.text()).not.toContain('v4lue-asked-for');
    stream.close();
  });

  it('is watched by a bounded number of pages', async () => {
    const streams = await Promise.all([1, 2, 3, 4].map(() => watch(two, 'watcher')));
    await Promise.all(streams.map(({ shows }) => shows('event: watching')));
    expect((await ask(two, 'GET', 'api/live', as('watcher'))).status).toBe(429);
    expect((await ask(two, 'GET', 'api/status', as('chief'))).body['streams']).toMatchObject({ console: 4 });
    for (const { close } of streams) close();
  });

  it('are approvals for approvers alone, which are decided once and recorded', async () => {
    expect((await ask(one, 'GET', 'api/approvals', as('watcher'))).status).toBe(403);
    const change = { class_name: 'Post', object_id: 'p01', fields: { title: 'Approved here' } };
    const updating = callTool(two, 'update_object', change, as('writer'));
    let id: string | undefined;
    while (id === undefined) {
      const { body } = await ask(one, 'GET', 'api/approvals', as('chief'));
      id = (body['approvals'] as { id: string }[])[0]?.id;
    }
    const decide = (digest?: unknown, decision = 'approve') =>
      ask(one, 'POST', `api/approvals/${id}`, { ...as('chief'), ...CHANGING }, { decision, digest });
    const shown = (await ask(one, 'GET', `api/approvals/${id}`, as('chief'))).body;
    expect(shown).toHaveProperty('preview');
    expect((await decide()).status).toBe(400);
    expect((await decide('of another view')).status).toBe(412);
    expect((await decide(shown['digest'])).status).toBe(200);
    // The answer may have been lost: who says the same again is told so.
    expect((await decide(shown['digest'])).status).toBe(200);
    expect((await decide(shown['digest'], 'deny')).status).toBe(409);
    expect((await updating).isError).toBe(false);
    const found = await ask(one, 'GET', 'api/audit?type=operator_action', as('watcher'));
    expect(found.text).toContain('"action":"console.approve"');
  });

  it('is what an agent may do, as the deciding code answers, and nothing runs', async () => {
    const explain = (args: object) =>
      ask(one, 'POST', 'api/explain', { ...as('watcher'), ...CHANGING }, { agent: 'writer', ...args });
    const hidden = await explain({ tool: 'query_class', args: { class_name: 'Contract' } });
    expect(hidden.body).toMatchObject({ allowed: false, refusal: { gate: 'class' } });
    const write = { class_name: 'Post', object_id: 'p02', fields: { title: 'never written' } };
    const asked = await explain({ tool: 'update_object', args: write });
    expect(asked.body).toMatchObject({ allowed: true, asksApproval: true });
    const row = await callTool(one, 'get_object', { class_name: 'Post', object_id: 'p02' }, as('writer'));
    expect(row.wire).not.toContain('never written');
    const { body } = await ask(one, 'GET', 'api/agents', as('watcher'));
    expect((body['agents'] as { name: string }[]).map(({ name }) => name)).toEqual(
      Object.keys(AGENTS).sort(),
    );
  });

  it('are exports of everybody, on whichever replica, and no way to fetch them', async () => {
    const asked = await callTool(
      one,
      'export_data',
      { class_name: 'Post', delivery: 'resource' },
      as('writer'),
    );
    const uri = /export:\/\/([\w-]+)/.exec(asked.wire)?.[1] ?? 'none';
    const { text, body } = await ask(two, 'GET', 'api/exports', as('watcher'));
    expect(body['exports']).toMatchObject([
      { class_name: 'Post', owner: { agent: 'writer', tenant: 'acme' } },
    ]);
    expect(text).not.toContain(uri);
  });
});

describe('the console while Redis is away', () => {
  const seen = (service: Service, path: string, cookie: string) =>
    ask(service, 'GET', path, { Cookie: cookie });

  it('shows a known session what the replica knows itself, as degraded, and decides nothing', async () => {
    const session = await signIn(one, { session: `r:${SECRET}` });
    const cookie = cookieOf(session);
    const strange = cookieOf(await signIn(one, { key: KEYS.watcher }));
    const ended = cookieOf(await signIn(one, { key: KEYS.chief }));
    for (const known of [cookie, ended])
      expect((await seen(one, 'api/state', known)).body).toMatchObject({ degraded: false });
    await ask(one, 'DELETE', 'session', { Cookie: ended, ...CHANGING });
    redis.pause();
    try {
      await expect
        .poll(async () => (await seen(one, 'api/state', cookie)).body, { timeout: 15_000 })
        .toMatchObject({
          degraded: true,
          replicas: [{ dependencies: { redis: 'down', mongodb: 'up' } }, {}],
        });
      const [state, status, audit, overview, renewed] = await Promise.all(
        ['api/state', 'api/status', 'api/audit', 'api/overview', 'session'].map((path) =>
          seen(one, path, cookie),
        ),
      );
      for (const answer of [state, status, audit, overview, renewed]) expect(answer?.status).toBe(200);
      for (const path of ['policy', 'policy/agents', 'policy/agents/writer', 'policy/changes', 'metadata'])
        expect([path, (await seen(one, `api/${path}`, cookie)).status]).toEqual([path, 200]);
      expect(audit?.text).toContain('console.sign_in');
      expect(overview?.body['waiting']).toMatchObject({ tasks: null, exports: null });
      for (const path of ['api/approvals', 'api/tasks', 'api/agents'])
        expect([path, (await seen(one, path, cookie)).status]).toEqual([path, 503]);
      const decided = await ask(one, 'POST', 'api/approvals/any', { ...as('chief'), ...CHANGING }, {});
      expect(decided.status).toBe(503);
      expect((await seen(one, 'api/state', ended)).status).not.toBe(200);
      expect((await seen(two, 'api/state', strange)).status).not.toBe(200);
      database.pause();
      expect((await seen(one, 'api/state', cookie)).body).toMatchObject({ degraded: true });
    } finally {
      database.resume();
      redis.resume();
    }
    await expect
      .poll(async () => (await seen(one, 'api/state', cookie)).body['degraded'], { timeout: 15_000 })
      .toBe(false);
  });
});

describe('the console while the database is away', () => {
  it('names it with 503 where rows or classes would be read, and shows everything else', async () => {
    database.pause();
    try {
      const read = (path: string) => ask(one, 'GET', `api/${path}`, as('chief'));
      const unavailable = { status: 503, body: { error: expect.stringContaining('database') as string } };
      // What was read of the classes is known for some seconds more.
      await expect
        .poll(() => Promise.all(['metadata', 'policy/agents/writer'].map(read)), {
          timeout: 90_000,
          interval: 1_000,
        })
        .toMatchObject([unavailable, unavailable]);
      for (const path of ['state', 'status', 'overview', 'audit', 'policy', 'suspensions', 'agents/writer'])
        expect([path, (await read(path)).status]).toEqual([path, 200]);
    } finally {
      database.resume();
    }
  });
});

describe('credentials of operators', () => {
  it('stand in no log and no record', async () => {
    const audit = await ask(one, 'GET', 'api/audit?limit=200', as('chief'));
    for (const text of [one.output().stderr, one.output().stdout, two.output().stderr, audit.text])
      for (const secret of [...Object.values(KEYS), SECRET]) expect(text).not.toContain(secret);
  });

  it('cannot be tried without end', async () => {
    let status = 0;
    for (let at = 0; at < 30 && status !== 429; at++)
      ({ status } = await signIn(one, { key: `guess-${at}` }));
    expect(status).toBe(429);
    expect((await signIn(two, { key: KEYS.chief })).status).toBe(429);
    expect((await ask(one, 'GET', 'api/status', as('chief'))).status).toBe(200);
  });
});
