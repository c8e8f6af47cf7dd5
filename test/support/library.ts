/** Stands only where a caller of the tests may not read. */
export const SECRET = 'S3CRET-shelf-never-on-the-wire';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const all = { '*': true };
const signedIn = { requiresAuthentication: true };
const only = (user: string) => ({ ACL: { [user]: { read: true, write: true } } });

/** Notes of two users in two tenants, a hidden class, and classes whose triggers leave a trace. */
export const LIBRARY = {
  schemas: [
    {
      className: 'Note',
      fields: {
        title: { type: 'String' },
        rank: { type: 'Number' },
        orgId: { type: 'String' },
        archived: { type: 'Boolean' },
        stampedBy: { type: 'String' },
        secret: { type: 'String' },
        inner: { type: 'String' },
        owner: { type: 'Pointer', targetClass: '_User' },
        shelf: { type: 'Pointer', targetClass: 'Shelf' },
        vault: { type: 'Pointer', targetClass: 'Vault' },
        tags: { type: 'Array' },
      },
      classLevelPermissions: {
        find: all,
        get: all,
        count: all,
        create: signedIn,
        update: signedIn,
        delete: signedIn,
        protectedFields: { '*': ['secret'] },
      },
    },
    { className: 'Shelf', fields: { name: { type: 'String' }, orgId: { type: 'String' } } },
    { className: 'Banned', fields: { title: { type: 'String' } } },
    { className: 'Vault', fields: { code: { type: 'String' } } },
    { className: 'Traced', fields: { name: { type: 'String' } } },
    { className: 'Trace', fields: { kind: { type: 'String' }, note: { type: 'String' } } },
  ],
  users: ['ada', 'bob'].map((name) => ({
    objectId: name,
    username: name,
    ACL: { [name]: { read: true, write: true } },
  })),
  roles: [],
  sessions: ['ada', 'bob', 'leaving'].map((name) => ({
    sessionToken: `r:session-of-${name}`,
    user: name === 'leaving' ? 'bob' : name,
    expiresAt: '2099-01-01T00:00:00.000Z',
  })),
  objects: {
    Shelf: [
      { objectId: 's1', name: 'North', orgId: 'acme' },
      { objectId: 's2', name: SECRET, orgId: 'globex' },
    ],
    Banned: [{ objectId: 'b1', title: 'banned', ACL: {} }],
    Vault: [{ objectId: 'v1', code: SECRET }],
    Traced: [{ objectId: 't1', name: 'as stored' }],
    Note: [
      { objectId: 'open', title: 'open', rank: 1, orgId: 'acme', shelf: pointer('Shelf', 's1') },
      { objectId: 'adas', title: 'of ada', rank: 2, orgId: 'acme', secret: SECRET, ...only('ada') },
      { objectId: 'bobs', title: 'of bob', rank: 3, orgId: 'acme', inner: SECRET, ...only('bob') },
      {
        objectId: 'old',
        title: 'old',
        rank: 4,
        orgId: 'acme',
        archived: true,
        vault: pointer('Vault', 'v1'),
      },
      { objectId: 'foreign', title: SECRET, rank: 5, orgId: 'globex', shelf: pointer('Shelf', 's2') },
      { objectId: 'keep', title: 'keep me', rank: 6, orgId: 'acme', shelf: pointer('Shelf', 's2') },
      { objectId: 'banned', title: 'banned', rank: 7, orgId: 'acme' },
      { objectId: 'count', title: 'counted', rank: 0, orgId: 'acme', tags: [] },
    ],
  },
};

/** What is banned no session may read: only the operator's own authority can answer this filter. */
const notBanned = { $dontSelect: { query: { className: 'Banned', where: {} }, key: 'title' } };
const filters = { Note: { archived: { $ne: true }, title: notBanned } };
const shape = { tenantId: 'acme', rateLimit: 1_000_000, filters };
const writer = { ...shape, permissions: 'admin' };
const key = (agent: string) => ({ apiKey: `key-${agent}`, agent });

export const LIBRARY_CONFIG = {
  agents: {
    operator: writer,
    session: { ...writer, identity: { session: 'caller' } },
    client: { ...writer, clientMode: true, allowMutations: true },
    asAda: { ...writer, identity: { user: 'ada' } },
  },
  auth: ['operator', 'session', 'client', 'asAda'].map(key),
  policy: {
    classes: {
      Note: {
        fields: ['title', 'rank', 'archived', 'stampedBy', 'secret', 'owner', 'shelf', 'vault', 'tags'],
        tenantScope: { field: 'orgId' },
      },
      Shelf: { tenantScope: { field: 'orgId' } },
      Vault: { hidden: true },
    },
  },
};

/** Callers by what stands before the data. */
export const AS = {
  operator: { 'X-MCP-API-Key': 'key-operator' },
  ada: { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-ada' },
  bob: { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-bob' },
  leaving: { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-leaving' },
  clientAda: { 'X-MCP-API-Key': 'key-client', 'X-Parse-Session-Token': 'r:session-of-ada' },
  assumedAda: { 'X-MCP-API-Key': 'key-asAda' },
};

export const GATES_OPEN = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
};
