/** A configuration without a mistake that says something in every section: mistakes are made in it, one at a time. */
export const VALID: Readonly<Record<string, unknown>> = {
  server: {
    host: '127.0.0.1',
    port: 0,
    path: '/mcp',
    allowedHosts: ['a.example'],
    preAuthRateLimit: { limit: 9, window: 1 },
  },
  database: { uri: 'embedded', name: 'parley' },
  reload: { watch: true, interval: 0.1 },
  subscriptions: { debounce: 0.1, maxPerSession: 5 },
  tasks: { lifetime: 60, concurrency: 2 },
  changes: { record: 'none', keep: 7, undo: 'nobody', maxEntries: 10, openFor: 2 },
  exports: { lifetime: 60, maxRows: 100 },
  approvals: { mode: 'client', expiry: 60 },
  audit: { log: true, replica: 'one' },
  llm: { provider: 'openai', model: 'm', maxTokens: 500, prices: { m: { input: 1, output: 2 } } },
  embeddings: { endpoint: 'http://127.0.0.1:9/v1', model: 'e', dimensions: 3 },
  traces: { ratio: 0.5, callers: 'follow' },
  metrics: { host: '127.0.0.1' },
  logging: { format: 'plain', level: 'info' },
  agents: {
    reader: {
      permissions: 'readonly',
      tools: { except: ['aggregate'] },
      classes: { only: ['Post', 'Author'] },
      filters: { Post: { archived: { $ne: true } }, default: { active: true } },
      tenantId: 'acme',
      rateLimit: 1_000_000,
      budget: { calls: 100, window: 60 },
      llm: { maxTokens: 100 },
    },
    session: { identity: { session: 'caller' } },
    user: { identity: { user: 'ada', label: 'support' }, tools: { profile: 'lean' } },
    role: { permissions: 'write', identity: { role: 'editors' }, masterAtlas: true },
  },
  auth: [
    { apiKey: 'key-of-reader', agent: 'reader' },
    { parseSession: true, agent: 'session' },
    { apiKey: 'key-of-user', agent: 'user' },
    { apiKey: 'key-of-role', agent: 'role' },
  ],
  policy: {
    requireApprovalFor: ['admin'],
    strictClassFilter: false,
    maskingKey: '0123456789abcdef0123456789abcdef',
    tenantBudget: { rows: 1000 },
    classes: {
      Post: {
        description: 'Articles',
        fields: ['title', 'author', 'archived', 'active', 'orgId', 'email'],
        joinFields: ['title'],
        masks: { email: 'hash', title: { readonly: { mask: { keep: 2 } }, admin: 'none' } },
        canonicalFilter: { archived: { $ne: true } },
        tenantScope: { field: 'orgId', bypass: ['admin'] },
        properties: { title: { description: 'Heading', enum: { a: 'A' } } },
      },
      Author: { hidden: { except: 'masterKey' } },
    },
  },
};

type Members = Readonly<Record<string, unknown>>;

/** A copy with another value at a dotted path; undefined takes it away. */
function withAt(config: Members, path: string, value: unknown): Members {
  const [key = '', ...rest] = path.split('.');
  const copied: Record<string, unknown> | unknown[] = Array.isArray(config)
    ? [...(config as unknown[])]
    : { ...config };
  const members = copied as Record<string, unknown>;
  const below = Object.hasOwn(members, key) ? members[key] : {};
  const next = rest.length === 0 ? value : withAt(below as Members, rest.join('.'), value);
  if (next === undefined) delete members[key];
  else
    Object.defineProperty(members, key, {
      value: next,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  return members;
}

export interface Wrong {
  readonly what: string;
  /** Where something else is put in the valid configuration. */
  readonly at: string;
  readonly put: unknown;
  /** The one line that is reported. Default path: `at`. */
  readonly path?: string;
  readonly message: RegExp;
  /** Only where a file is read: applications say it otherwise, or have no such section. */
  readonly fileOnly?: true;
}

/** One mistake each, and what is said of it, once. */
export const WRONG: readonly Wrong[] = [
  {
    what: 'a section that does not exist',
    at: 'serverr',
    put: {},
    message: /^unknown key; did you mean 'server'\?/,
  },
  { what: 'a section of another type', at: 'server', put: 5, message: /^must be an object$/ },
  {
    what: 'a misspelt option',
    at: 'server.prot',
    put: 1,
    message: /did you mean 'port'\? accepted: host, port, /,
  },
  {
    what: 'text for a number',
    at: 'server.port',
    put: 'many',
    message: /^must be a whole number from 0 to 65535, not text$/,
  },
  { what: 'a number out of bounds', at: 'server.port', put: 70_000, message: /from 0 to 65535$/ },
  { what: 'a path that is none', at: 'server.path', put: 'mcp', message: /^must be a path: / },
  {
    what: 'half a limit',
    at: 'server.preAuthRateLimit',
    put: { limit: 5 },
    path: 'server.preAuthRateLimit.window',
    message: /^is needed: a number above 0$/,
  },
  {
    what: 'two headers',
    at: 'server.requireCustomHeader',
    put: { a: 'b', c: 'd' },
    message: /^must have exactly 1 key$/,
  },
  {
    what: 'a wrong key of tools',
    at: 'agents.reader.tools',
    put: { invalid: [] },
    path: 'agents.reader.tools.invalid',
    message: /^unknown key; accepted: only, except, profile$/,
  },
  {
    what: 'text for tools',
    at: 'agents.reader.tools',
    put: 'query_class',
    message: /^must be a list of text, null, \{ only, except \} or \{ profile \}, not text$/,
  },
  {
    what: 'a profile beside a list',
    at: 'agents.user.tools.only',
    put: ['get_object'],
    message: /^cannot be combined with 'profile'$/,
  },
  {
    what: 'two identities',
    at: 'agents.user.identity',
    put: { session: 'caller', role: 'x' },
    message: /^session, role are mutually exclusive: give one of session, user, claim, impersonate, role$/,
  },
  {
    what: 'a misspelt identity',
    at: 'agents.user.identity',
    put: { rloe: 'x' },
    path: 'agents.user.identity.rloe',
    message: /did you mean 'role'/,
  },
  {
    what: 'an identity of nothing',
    at: 'agents.user.identity',
    put: {},
    message: /^needs one of session, user, claim, impersonate, role$/,
  },
  {
    what: 'an identity that is text',
    at: 'agents.user.identity',
    put: 'admin',
    message: /^must be master, \{ session \}, \{ user \}/,
  },
  {
    what: 'a user that is no id',
    at: 'agents.user.identity.user',
    put: 'role:x',
    message: /objectId of a user/,
  },
  {
    what: 'a tier that does not exist',
    at: 'agents.reader.permissions',
    put: 'root',
    message: /^must be one of readonly, write, admin$/,
  },
  {
    what: 'a misspelt filter',
    at: 'agents.reader.filter',
    put: { Post: {} },
    message: /did you mean 'filters'/,
  },
  {
    what: 'a list of filters',
    at: 'agents.reader.filters',
    put: [],
    message: /^must be an object, not a list$/,
  },
  {
    what: 'an operator that does not exist',
    at: 'agents.reader.filters.Post',
    put: { a: { $nq: 1 } },
    message: /\$nq/,
  },
  {
    what: 'a class filtered twice',
    at: 'agents.reader.filters',
    put: { User: {}, _User: {} },
    path: 'agents.reader.filters._User',
    message: /same class/,
  },
  {
    what: 'a prototype as the name of an agent',
    at: 'agents.__proto__',
    put: { permissions: 'admin' },
    message: /refused everywhere/,
  },
  {
    what: 'a constructor as the name of an agent',
    at: 'agents.constructor',
    put: {},
    message: /refused everywhere/,
  },
  {
    what: 'a prototype as the name of a class',
    at: 'policy.classes.prototype',
    put: {},
    message: /refused everywhere/,
  },
  {
    what: 'a prototype in a filter',
    at: 'agents.reader.filters.Post',
    put: JSON.parse('{"$or":[{"a":{"__proto__":{}}}]}'),
    path: 'agents.reader.filters.Post.$or.0.a.__proto__',
    message: /refused everywhere/,
  },
  { what: 'a prototype at the top', at: '__proto__', put: {}, message: /refused everywhere/ },
  {
    what: 'a prototype among prices',
    at: 'llm.prices.__proto__',
    put: { input: 1, output: 1 },
    message: /refused everywhere/,
    fileOnly: true,
  },
  {
    what: 'a mask that does not exist',
    at: 'policy.classes.Post.masks.email',
    put: 'hide',
    message: /^must be none, drop, deny, mask, hash, \{ mask \}, \{ hash \} or \{ readonly \}$/,
  },
  {
    what: 'a misspelt tier of a mask',
    at: 'policy.classes.Post.masks.email',
    put: { readonyl: 'drop' },
    path: 'policy.classes.Post.masks.email.readonyl',
    message: /did you mean 'readonly'/,
  },
  {
    what: 'a mask without its key',
    at: 'policy.maskingKey',
    put: undefined,
    path: 'policy.classes.Post.masks.email',
    message: /needs policy\.maskingKey/,
  },
  {
    what: 'a key that is too short',
    at: 'policy.maskingKey',
    put: 'short',
    message: /at least 32 characters/,
  },
  {
    what: 'a misspelt key, without the mask that needs it',
    at: 'policy',
    put: withAt(
      withAt(VALID['policy'] as Members, 'maskingKey', undefined),
      'maskingKye',
      '0123456789abcdef0123456789abcdef',
    ),
    path: 'policy.maskingKye',
    message: /did you mean 'maskingKey'/,
  },
  {
    what: 'join fields that are not fields',
    at: 'policy.classes.Post.joinFields',
    put: ['secret'],
    message: /not among fields: secret/,
  },
  {
    what: 'a hidden that is text',
    at: 'policy.classes.Author.hidden',
    put: 'yes',
    message: /^must be true or false or \{ except \}, not text$/,
  },
  {
    what: 'an agent that does not exist',
    at: 'auth.0.agent',
    put: 'raeder',
    message: /^no agent named 'raeder'; did you mean 'reader'\?$/,
  },
  { what: 'no credential', at: 'auth.0', put: { agent: 'reader' }, message: /exactly one of/ },
  {
    what: 'a misspelt credential',
    at: 'auth.0',
    put: { apiKye: 'k', agent: 'reader' },
    path: 'auth.0.apiKye',
    message: /did you mean 'apiKey'/,
  },
  {
    what: 'a rule that is text, before rules that stay where they are',
    at: 'auth.1',
    put: 'parseSession',
    message: /^must be an object, not text$/,
  },
  { what: 'all rules in one', at: 'auth', put: { apiKey: 'k', agent: 'reader' }, message: /^must be a list/ },
  {
    what: 'an agent that is text',
    at: 'agents.reader',
    put: 'readonly',
    message: /^must be an object, not text$/,
  },
  { what: 'agents that are a list', at: 'agents', put: [], message: /^must be an object, not a list$/ },
  {
    what: 'a mode that does not exist',
    at: 'approvals.mode',
    put: 'dsek',
    message: /^must be one of client, desk, both$/,
  },
  {
    what: 'a sink without a kind',
    at: 'audit.sinks',
    put: [{ path: 'x' }],
    path: 'audit.sinks.0.kind',
    message: /^is needed/,
  },
  {
    what: 'a sink of a misspelt path',
    at: 'audit.sinks',
    put: [{ kind: 'file', paht: 'x' }],
    path: 'audit.sinks.0.paht',
    message: /did you mean 'path'/,
  },
  {
    what: 'an address that others can reach, without credentials',
    at: 'auth',
    put: undefined,
    path: 'server.host',
    message: /needs authentication/,
    fileOnly: true,
  },
  {
    what: 'an unknown tool where names are strict',
    at: 'agents.reader',
    put: {
      ...((VALID['agents'] as Members)['reader'] as object),
      tools: ['qeury_class'],
      strictToolFilter: true,
    },
    path: 'agents.reader.tools',
    message: /no tool is named 'qeury_class'; did you mean 'query_class'/,
  },
  {
    what: 'a seed that is not there',
    at: 'database.seed',
    put: './nowhere.json',
    message: /the seed file .*nowhere\.json cannot be read/,
  },
  {
    what: 'a seed that is a folder',
    at: 'database.seed',
    put: '.',
    message: /^the seed file .* cannot be read: it is not a file$/,
  },
  {
    what: 'a package option of the wrong type',
    at: 'redis',
    put: { url: 5 },
    path: 'redis.url',
    message: /^must be/,
  },
];

/** The configuration with this mistake. */
export function wrongConfig({ at, put, path }: Wrong): Members {
  const base = path === 'server.host' && at === 'auth' ? withAt(VALID, 'server.host', '0.0.0.0') : VALID;
  return withAt(base, at, put);
}
