/** Stands only behind what no attacker of these tests may read. */
export const HIDDEN = 'HIDDEN-5c1e-behind-a-guard';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const people = (...ids: string[]) => ({
  __op: 'AddRelation',
  objects: ids.map((id) => pointer('Person', id)),
});
const open = { '*': true };
const reads = { find: open, get: open, count: open };
const LATER = '2099-01-01T00:00:00.000Z';

const DOSSIER = {
  className: 'Dossier',
  fields: {
    title: { type: 'String' },
    secret: { type: 'Object' },
    subject: { type: 'Pointer', targetClass: 'Person' },
  },
  classLevelPermissions: { ...reads, protectedFields: { '*': ['secret'] } },
};

/** Relations as the advisory has them: a protected one, one of a row nobody may read, one of a class nobody may get. */
const RELATIONS = [
  { className: 'Person', fields: { name: { type: 'String' } }, classLevelPermissions: reads },
  {
    className: 'Group',
    fields: {
      name: { type: 'String' },
      members: { type: 'Relation', targetClass: 'Person' },
      blocked: { type: 'Relation', targetClass: 'Person' },
    },
    classLevelPermissions: { ...reads, protectedFields: { '*': ['blocked'] } },
  },
  {
    className: 'Lodge',
    fields: { members: { type: 'Relation', targetClass: 'Person' } },
    classLevelPermissions: { find: open, count: open, get: {} },
  },
];

/** Pointers of a class that everybody reads into classes and rows that the reader may not. */
const CARD = {
  className: 'Card',
  fields: {
    label: { type: 'String' },
    dossier: { type: 'Pointer', targetClass: 'Dossier' },
    sealed: { type: 'Pointer', targetClass: 'Sealed' },
    locked: { type: 'Pointer', targetClass: 'Locked' },
    session: { type: 'Pointer', targetClass: '_Session' },
    matter: { type: 'Pointer', targetClass: 'Matter' },
    matters: { type: 'Array' },
  },
  classLevelPermissions: reads,
};

export const VAULT = {
  schemas: [
    DOSSIER,
    ...RELATIONS,
    CARD,
    { className: 'Sealed', fields: { text: { type: 'String' } }, classLevelPermissions: reads },
    {
      className: 'Locked',
      fields: { text: { type: 'String' } },
      classLevelPermissions: { find: {}, get: {}, count: {} },
    },
    {
      className: 'Matter',
      fields: { text: { type: 'String' }, released: { type: 'Boolean' } },
      classLevelPermissions: reads,
    },
    {
      className: '_Session',
      fields: { deviceNote: { type: 'String' } },
      classLevelPermissions: { ...reads, protectedFields: { '*': ['deviceNote'] } },
    },
  ],
  users: [
    { objectId: 'mallory', username: 'mallory', email: 'mallory@vault.example' },
    {
      objectId: 'victim',
      username: 'victim',
      password: 'the password of the victim',
      email: 'victim@vault.example',
      ACL: { '*': { read: true } },
    },
  ],
  roles: [{ objectId: 'idGuests', name: 'guests', users: ['mallory'] }],
  sessions: [
    {
      objectId: 'ownSession',
      sessionToken: `r:${HIDDEN}-mallory`,
      user: 'mallory',
      expiresAt: LATER,
      deviceNote: HIDDEN,
    },
    {
      objectId: 'hersession',
      sessionToken: `r:${HIDDEN}-victim`,
      user: 'victim',
      expiresAt: LATER,
      deviceNote: HIDDEN,
    },
  ],
  objects: {
    Person: ['p1', 'p2', 'p3'].map((id) => ({ objectId: id, name: id })),
    Dossier: [
      {
        objectId: 'd1',
        title: 'one',
        secret: { code: HIDDEN, score: 1, inner: { deep: HIDDEN } },
        subject: pointer('Person', 'p1'),
      },
      { objectId: 'd2', title: 'two', secret: { code: 'other', score: 2 } },
    ],
    Group: [
      { objectId: 'readable', name: 'readable', members: people('p1'), blocked: people('p2') },
      { objectId: 'private', name: 'private', members: people('p2', 'p3'), ACL: {} },
    ],
    Lodge: [{ objectId: 'lodge', members: people('p3') }],
    Sealed: [{ objectId: 's1', text: HIDDEN }],
    Locked: [{ objectId: 'l1', text: HIDDEN }],
    Matter: [
      { objectId: 'm1', text: 'released', released: true },
      { objectId: 'm2', text: HIDDEN, released: false },
      { objectId: 'm3', text: HIDDEN, released: true, ACL: {} },
    ],
    Card: [
      {
        objectId: 'c1',
        label: 'card',
        dossier: pointer('Dossier', 'd1'),
        sealed: pointer('Sealed', 's1'),
        locked: pointer('Locked', 'l1'),
        session: pointer('_Session', 'ownSession'),
        matter: pointer('Matter', 'm2'),
        matters: ['m1', 'm2', 'm3'].map((id) => pointer('Matter', id)),
      },
    ],
  },
};

const limits = { rateLimit: 1_000_000 };
/** What an application's trigger would do to every query of the class. */
const triggers = { filters: { Matter: { released: true } } };
const attacker = { ...limits, ...triggers };

export const VAULT_CONFIG = {
  agents: {
    endUser: attacker,
    assumed: { ...attacker, identity: { user: 'mallory' } },
    guests: { ...attacker, identity: { role: 'guests' } },
    client: { ...attacker, clientMode: true },
    operator: limits,
  },
  auth: [
    ...['assumed', 'guests', 'client', 'operator'].map((agent) => ({ apiKey: `key-${agent}`, agent })),
    { parseSession: true, agent: 'endUser' },
  ],
  policy: {
    classes: {
      Sealed: { hidden: true },
      _Session: { hidden: false },
      Card: { properties: { matters: { targetClass: 'Matter' } } },
    },
  },
};

type Headers = Record<string, string>;
export const withKey = (agent: string): Headers => ({ 'X-MCP-API-Key': `key-${agent}` });
export const withSession = (user: string): Headers => ({ 'X-Parse-Session-Token': `r:${HIDDEN}-${user}` });

export const OPERATOR = withKey('operator');
/** Every posture but the master key. */
export const ATTACKERS: readonly (readonly [who: string, headers: Headers])[] = [
  ['a signed-in user', withSession('mallory')],
  ['an assumed user', withKey('assumed')],
  ['a role', withKey('guests')],
  ['a client without a master key', { ...withKey('client'), ...withSession('mallory') }],
];
/** Of those, the ones that may call more than the client-safe tools. */
export const AGENTS = ATTACKERS.slice(0, 3);
