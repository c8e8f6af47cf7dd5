import { type OutgoingHttpHeaders, request } from 'node:http';

/** One request of a route beside MCP. */
export interface RouteRequest {
  readonly method: string;
  readonly path: string;
  /** Name of the caller; `nobody` sends no credential. */
  readonly caller: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** What the answer says changes from run to run: only status and headers are compared. */
  readonly changes?: boolean;
}

const JSON_BODY = { 'Content-Type': 'application/json' };
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];

function* crossed(paths: readonly string[], callers: readonly string[], methods: readonly string[]) {
  for (const path of paths)
    for (const caller of callers) for (const method of methods) yield { method, path, caller };
}

/** Bodies of a decision, from those that are no JSON to one that is right. */
const DECISIONS: readonly Pick<RouteRequest, 'headers' | 'body'>[] = [
  {},
  { body: '{"digest":"d","decision":"deny"}' },
  { headers: { 'Content-Type': 'text/plain' }, body: '{"digest":"d","decision":"deny"}' },
  { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'decision=deny' },
  { headers: { 'Content-Type': 'application/jsonp' }, body: '{"digest":"d","decision":"deny"}' },
  {
    headers: { 'Content-Type': 'APPLICATION/JSON; charset=utf-8' },
    body: '{"digest":"d","decision":"deny"}',
  },
  { headers: { ...JSON_BODY, 'Transfer-Encoding': 'chunked' }, body: '{"digest":"d","decision":"deny"}' },
  { headers: JSON_BODY },
  ...[
    '{',
    'null',
    '7',
    '"deny"',
    '[]',
    '[{"digest":"d","decision":"deny"}]',
    '{}',
    '{"decision":"maybe"}',
    '{"decision":null}',
    '{"decision":["deny"]}',
    '{"decision":"maybe","reason":7}',
    '{"decision":"deny"}',
    '{"decision":"deny","digest":7}',
    '{"digest":"d","decision":"deny","reason":7}',
    '{"digest":"d","decision":"deny","reason":null}',
    '{"digest":"d","decision":"deny","reason":{"x":1}}',
    '{"digest":"d","decision":"deny","reason":"no","more":1}',
    '{"__proto__":{"digest":"d","decision":"deny"}}',
    '{"digest":"d","decision":"approve","constructor":{"prototype":{}}}',
    `{"digest":"d","decision":"deny","reason":"${'x'.repeat(16_000)}"}`,
    `{"digest":"d","decision":"deny","reason":"${'x'.repeat(20_000)}"}`,
  ].map((body) => ({ headers: JSON_BODY, body })),
];

/** Requests of the routes of an instance that is served at `base`. */
export function* instanceRequests(base: string): Generator<RouteRequest> {
  const at = (paths: string) => paths.split(' ').map((path) => `${base}${path}`);
  yield* crossed(
    at('/health /health/ /health// /health/x /health?x=1 /ready /ready/ /ready/x'),
    ['nobody'],
    METHODS,
  );
  yield* crossed(at('/tools /tools/ /tools// /tools/x /tools?x=1'), ['nobody', 'reader'], METHODS);
  yield* crossed(
    at(
      '/approvals /approvals/ /approvals?x=1 /approvals/none /approvals/none/ /approvals/a/b /approvals/a%20b /approvals/%E0',
    ),
    ['nobody', 'reader', 'chief'],
    METHODS,
  );
  yield* crossed(
    at('/exports/none /exports/ /exports/none/ /exports/a/b /exports/a%20b'),
    ['nobody', 'reader'],
    METHODS,
  );
  yield* crossed(
    at('/tools /approvals /approvals/none /exports/none'),
    ['guesser', 'bearer', 'twice', 'elsewhere', 'stranger'],
    ['GET', 'DELETE'],
  );
  for (const path of at('/health /ready /tools /approvals'))
    yield { method: 'GET', path, caller: 'chief', headers: { 'If-None-Match': '*' } };
  for (const caller of ['nobody', 'reader', 'chief'])
    for (const body of DECISIONS) yield { method: 'POST', path: `${base}/approvals/none`, caller, ...body };
}

/** Requests of the page at `/` and of paths that look like it. */
export function* startPageRequests(): Generator<RouteRequest> {
  yield* crossed(
    ['/', '/?x=1', '//', '/index.html', '/%2F'],
    ['nobody', 'guesser', 'elsewhere', 'stranger'],
    METHODS,
  );
  for (const accept of ['text/html,*/*;q=0.8', 'application/json', '*/*', 'text/htmlx'])
    for (const method of ['GET', 'HEAD'])
      yield { method, path: '/', caller: 'nobody', headers: { Accept: accept } };
  yield { method: 'GET', path: '/', caller: 'nobody', headers: { 'If-None-Match': '*' } };
}

/** Requests of the documents of OAuth, whose paths end with that of MCP. */
export function* documentRequests(endings: readonly string[]): Generator<RouteRequest> {
  for (const name of ['oauth-protected-resource', 'oauth-authorization-server'])
    yield* crossed(
      endings.map((ending) => `/.well-known/${name}${ending}`),
      ['nobody', 'elsewhere'],
      METHODS,
    );
}

const CHANGE = { 'X-Parley-Console': '1' };
const CHANGING = { ...CHANGE, ...JSON_BODY };
const CONSOLE = (
  'session api/live api/approvals api/approvals/none api/agents api/policy api/metadata api/audit api/tasks api/exports ' +
  'api/status api/explain api/unknown'
).split(' ');
const MOVING = /api\/(?:status|audit|tasks|exports)/;

/** Requests of the console. They stay within its limits of requests and sign-ins. */
export function* consoleRequests(): Generator<RouteRequest> {
  for (const method of METHODS)
    for (const path of ['/console', '/console/', '/console?x=1'])
      yield { method, path, caller: 'nobody', changes: true };
  yield* crossed(
    ['/console/assets/x/main.js', '/console/assets/x/..%2fmain.js', '/console/x'],
    ['nobody', 'chief'],
    METHODS,
  );
  for (const name of CONSOLE) {
    const path = `/console/${name}`;
    for (const caller of ['nobody', 'chief', 'reader'])
      for (const method of METHODS) {
        // The stream of records has no end.
        if (name === 'api/live' && method === 'GET' && caller === 'chief') continue;
        if (name === 'session' && method === 'POST') continue;
        const headers = ['GET', 'HEAD', 'POST'].includes(method) ? {} : CHANGE;
        yield { method, path, caller, headers, changes: MOVING.test(path) };
      }
    for (const caller of ['guesser', 'elsewhere', 'stranger', 'crossing'])
      yield { method: 'GET', path, caller, headers: {} };
  }
  for (const body of DECISIONS) {
    const headers = { ...CHANGE, ...body.headers };
    yield { method: 'POST', path: '/console/api/approvals/none', caller: 'chief', ...body, headers };
  }
  for (const body of [
    '{}',
    '{"agent":""}',
    '{"agent":7}',
    '{"agent":"reader"}',
    '{"agent":"reader","tool":""}',
    '{"agent":"reader","tool":"count_objects"}',
    '{"agent":"reader","tool":"count_objects","args":[]}',
    '{"agent":"reader","tool":"count_objects","args":null}',
    '{"agent":"reader","tool":"count_objects","args":{},"user":7}',
    '{"agent":"nobody","tool":"count_objects","args":{}}',
    '[]',
  ])
    yield { method: 'POST', path: '/console/api/explain', caller: 'chief', headers: CHANGING, body };
  for (const query of [
    'audit?agnet=x',
    'audit?cursor=x',
    'audit?outcome=maybe',
    'audit?from=yesterday',
    'audit?limit=1',
    'audit?limit=x&tool=count_objects&outcome=success',
    'audit?agent=',
    `audit?agent=${'x'.repeat(501)}`,
    'audit?__proto__=x',
    'audit?constructor=x',
    'policy?limit=1',
    'policy?limit=1&after=Author',
    'policy?limit=0',
    'policy?limit=1.5',
    'policy?limit=1&limit=2',
    'policy?more=1',
    'tasks?limit=1',
  ])
    yield {
      method: 'GET',
      path: `/console/api/${query}`,
      caller: 'chief',
      changes:
        query.startsWith('audit?limit') || query.startsWith('audit?agent=') || query.startsWith('tasks'),
    };
  for (const body of [
    undefined,
    '{',
    '{}',
    '{"key":7}',
    '{"key":"a b"}',
    '{"session":""}',
    '{"key":"wrong-key-000000"}',
    '{"key":"key-of-reader"}',
    '{"key":"key-of-chief"}',
  ])
    yield {
      method: 'POST',
      path: '/console/session',
      caller: 'nobody',
      headers: CHANGING,
      ...(body !== undefined && { body }),
    };
  yield { method: 'POST', path: '/console/session', caller: 'nobody', body: '{"key":"key-of-chief"}' };
  yield { method: 'GET', path: '/console/session', caller: 'sealed' };
  yield { method: 'DELETE', path: '/console/session', caller: 'sealed', headers: CHANGE };
}

const CALLERS: Readonly<Record<string, OutgoingHttpHeaders>> = {
  nobody: {},
  reader: { 'X-MCP-API-Key': 'key-of-reader' },
  chief: { 'X-MCP-API-Key': 'key-of-chief' },
  guesser: { 'X-MCP-API-Key': 'no such key' },
  bearer: { Authorization: 'Bearer no.such.token' },
  twice: { Authorization: ['Bearer a', 'Bearer b'] },
  elsewhere: { 'X-MCP-API-Key': 'key-of-chief', Origin: 'https://elsewhere.example' },
  stranger: { 'X-MCP-API-Key': 'key-of-chief', Host: 'elsewhere.example' },
  crossing: { 'X-MCP-API-Key': 'key-of-chief', 'Sec-Fetch-Site': 'cross-site' },
  sealed: { Cookie: 'parley-console=no.such.session' },
};

/** Characters. */
const MAX_SHOWN = 300;
const UNCOMPARED = new Set(['date', 'connection', 'keep-alive']);

/** The answer to a request, with what changes from run to run left out. */
function answerOf(origin: string, asked: RouteRequest): Promise<string> {
  const { method, path, caller, headers, body, changes } = asked;
  const { hostname, port, host } = new URL(origin);
  const length =
    body === undefined || headers?.['Transfer-Encoding'] ? {} : { 'Content-Length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const options = {
      hostname,
      port,
      method,
      path,
      // Given, because one that the service makes differs each time.
      headers: { 'X-Request-Id': 'scenario', ...length, ...CALLERS[caller], ...headers },
      agent: false,
    };
    request(options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(parts).toString();
        // Lists of tools and classes grow; what they hold is tried elsewhere.
        const isLong = Number(response.headers['content-length'] ?? text.length) > MAX_SHOWN;
        const uncompared = changes === true || isLong;
        const shown = Object.entries(response.headers)
          .filter(([name]) => !UNCOMPARED.has(name) && !(uncompared && name === 'content-length'))
          .map(([name, value]) => `${name}: ${String(value)}`)
          .sort();
        const content = changes === true ? [] : [isLong ? `${text.slice(0, 60)}…` : text];
        resolve(comparable([String(response.statusCode), ...shown, ...content].join(' | '), host));
      });
    })
      .on('error', reject)
      .end(body);
  });
}

/** Sealed sessions hold random bytes, and their lifetime is counted from now. */
const comparable = (text: string, host: string) =>
  text
    .replaceAll(host, '<host>')
    .replace(/(parley-console=)[^;]{20,}/, '$1<sealed>')
    .replace(/Max-Age=1[78]\d\d/, 'Max-Age=<idle>');

/** The questions by their answer, in the order of the first question of each. */
export async function answersTo(origin: string, requests: Iterable<RouteRequest>): Promise<string> {
  const asked = new Map<string, string[]>();
  for (const one of requests) {
    const answer = await answerOf(origin, one);
    asked.set(answer, [...(asked.get(answer) ?? []), `  ${questionOf(one)}`]);
  }
  return [...asked].map(([answer, questions]) => `${answer}\n${questions.join('\n')}\n`).join('\n');
}

function questionOf({ method, path, caller, headers = {}, body = '' }: RouteRequest): string {
  const given = [...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), body.slice(0, 80)];
  return `${method} ${path.slice(0, 120)} by ${caller} ${given.filter((part) => part !== '').join(' | ')}`.trim();
}
