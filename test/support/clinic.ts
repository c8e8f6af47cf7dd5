/** Stands only where a caller of the tests may not read. */
export const PRIVATE = 'PRIVATE-9f3a-never-for-others';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const readers = (...names: string[]) => ({
  ACL: Object.fromEntries(names.map((name) => [name, { read: true }])),
});
const open = { '*': true };
const LATER = '2099-01-01T00:00:00.000Z';

/** ada is a doctor, and doctors are staff; bob is a patient; cy is nobody in particular. */
export const CLINIC = {
  schemas: [
    {
      className: 'Chart',
      fields: {
        title: { type: 'String' },
        diagnosis: { type: 'String' },
        patient: { type: 'Pointer', targetClass: '_User' },
        ward: { type: 'Pointer', targetClass: 'Ward' },
        parent: { type: 'Pointer', targetClass: 'Chart' },
      },
      classLevelPermissions: {
        find: open,
        get: open,
        count: open,
        protectedFields: { '*': ['diagnosis'], 'role:doctors': [], 'userField:patient': [] },
      },
    },
    {
      className: 'Ward',
      fields: {
        name: { type: 'String' },
        budget: { type: 'Number' },
        charts: { type: 'Relation', targetClass: 'Chart' },
      },
      classLevelPermissions: {
        find: { 'role:staff': true },
        get: { requiresAuthentication: true },
        count: {},
        protectedFields: { '*': ['budget'] },
      },
    },
    {
      className: 'Diary',
      fields: { text: { type: 'String' }, owner: { type: 'Pointer', targetClass: '_User' } },
      classLevelPermissions: {
        find: { pointerFields: ['owner'] },
        get: { pointerFields: ['owner'] },
        count: { pointerFields: ['owner'] },
      },
    },
    {
      className: 'Payroll',
      fields: { amount: { type: 'String' } },
      classLevelPermissions: { find: {}, get: {}, count: {} },
    },
  ],
  users: ['ada', 'bob', 'cy'].map((name) => ({
    objectId: name,
    username: name,
    email: `${name}@clinic.example`,
    ACL: { '*': { read: true } },
  })),
  roles: [
    { objectId: 'idDoctors', name: 'doctors', users: ['ada'] },
    { objectId: 'idStaff', name: 'staff', roles: ['doctors'] },
  ],
  sessions: [
    ...['ada', 'bob', 'cy'].map((user) => ({ sessionToken: `r:${PRIVATE}-${user}`, user, expiresAt: LATER })),
    { sessionToken: `r:${PRIVATE}-late`, user: 'ada', expiresAt: '2001-01-01T00:00:00.000Z' },
  ],
  objects: {
    Chart: [
      { objectId: 'public', title: 'open', diagnosis: 'flu', ward: pointer('Ward', 'w1') },
      {
        objectId: 'staff',
        title: 'for staff',
        diagnosis: 'measles',
        ward: pointer('Ward', 'w2'),
        parent: pointer('Chart', 'public'),
        ...readers('role:staff'),
      },
      {
        objectId: 'bobs',
        title: 'of bob',
        diagnosis: 'gout',
        patient: pointer('_User', 'bob'),
        ward: pointer('Ward', 'w2'),
        ...readers('bob', 'role:doctors'),
      },
      { objectId: 'nobodys', title: PRIVATE, diagnosis: PRIVATE, ACL: {} },
    ],
    Ward: [
      {
        objectId: 'w1',
        name: 'North',
        budget: 1,
        charts: {
          __op: 'AddRelation',
          objects: ['public', 'staff', 'bobs', 'nobodys'].map((id) => pointer('Chart', id)),
        },
      },
      {
        objectId: 'w2',
        name: 'South',
        budget: 2,
        charts: { __op: 'AddRelation', objects: [pointer('Chart', 'public')] },
        ...readers('role:staff'),
      },
    ],
    Diary: [
      { objectId: 'dAda', text: 'of ada', owner: pointer('_User', 'ada') },
      { objectId: 'dBob', text: 'of bob', owner: pointer('_User', 'bob') },
      { objectId: 'dSecret', text: PRIVATE, owner: pointer('_User', 'bob'), ACL: {} },
    ],
    Payroll: [{ objectId: 'pay', amount: PRIVATE }],
  },
};

const limits = { rateLimit: 1_000_000 };
const key = (agent: string) => ({ apiKey: `key-${agent}`, agent });

export const CLINIC_CONFIG = {
  agents: {
    endUser: limits,
    client: { ...limits, clientMode: true },
    actsAsAda: { ...limits, identity: { user: 'ada' } },
    actsAsBob: { ...limits, identity: { user: 'bob' } },
    doctors: { ...limits, identity: { role: 'doctors' } },
    staff: { ...limits, identity: { role: 'role:staff' } },
    ghosts: { ...limits, identity: { role: 'ghosts' } },
    keyed: { ...limits, identity: { session: 'caller' } },
    operator: limits,
  },
  auth: [
    ...['actsAsAda', 'actsAsBob', 'doctors', 'staff', 'ghosts', 'keyed', 'client', 'operator'].map(key),
    { parseSession: true, agent: 'endUser' },
  ],
};

export const withKey = (agent: string) => ({ 'X-MCP-API-Key': `key-${agent}` });
export const withSession = (user: string) => ({ 'X-Parse-Session-Token': `r:${PRIVATE}-${user}` });
