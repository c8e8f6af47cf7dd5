import { fileURLToPath } from 'node:url';

/** Stands in every value that some agent below reads only in masked form. */
export const CLEAR = 'CLEARVALUE';
export const SALARIES = [770_111, 770_222];

const text = { type: 'String' };
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const open = { '*': true };
const clp = (protectedFields: object = {}) => ({
  find: open,
  get: open,
  count: open,
  create: open,
  update: open,
  protectedFields,
});

const customer = (index: number, name: string, more: object = {}) => ({
  objectId: `c${index}`,
  name,
  city: index % 2 ? 'Bern' : 'Genf',
  email: `${CLEAR}${index}@example.org`,
  phone: `${CLEAR}-phone-${index}`,
  ssn: `${CLEAR}-ssn-${index}`,
  token: `${CLEAR}-token-${index}`,
  card: `${CLEAR}-card-000${index}`,
  salary: SALARIES[index % 2],
  address: {
    street: `${CLEAR} street ${index}`,
    town: 'T',
    flats: [{ code: `${CLEAR}-code`, floor: index }],
  },
  manager: pointer('Person', 'p1'),
  scan: { __type: 'File', name: `${CLEAR}.png` },
  orgId: 'north',
  shop: `s${index}`,
  embedding: [1, 0, 0],
  ...more,
});

export const CUSTOMERS = {
  schemas: [
    {
      className: 'Customer',
      fields: {
        name: text,
        city: text,
        email: text,
        phone: text,
        ssn: text,
        token: text,
        card: text,
        salary: { type: 'Number' },
        address: { type: 'Object' },
        manager: { type: 'Pointer', targetClass: 'Person' },
        scan: { type: 'File' },
        orgId: text,
        shop: text,
        embedding: { type: 'Array' },
      },
      classLevelPermissions: clp({ '*': ['scan'], 'role:staff': [] }),
    },
    {
      className: 'Order',
      fields: { title: text, buyer: { type: 'Pointer', targetClass: 'Customer' }, orgId: text },
      classLevelPermissions: clp(),
    },
    { className: 'Person', fields: { name: text, phone: text }, classLevelPermissions: clp() },
  ],
  users: [
    { objectId: 'ada', username: 'ada', email: `${CLEAR}@ada.example` },
    { objectId: 'bob', username: 'bob' },
  ],
  objects: {
    Customer: [
      customer(1, 'Ada'),
      customer(2, 'Bob'),
      // The same person again, and one of whom nothing is known.
      customer(3, 'Ada again', { email: `${CLEAR}1@example.org` }),
      { objectId: 'c4', name: 'Nobody', orgId: 'north', shop: 's4' },
    ],
    Order: [
      { objectId: 'o1', title: 'first', buyer: pointer('Customer', 'c1'), orgId: 'north' },
      { objectId: 'o2', title: 'second', buyer: pointer('Customer', 'c4'), orgId: 'north' },
    ],
    Person: [{ objectId: 'p1', name: 'Pia', phone: `${CLEAR}-phone-1` }],
  },
};

const MASKS = {
  email: 'hash',
  phone: { hash: { domain: 'phone', acrossTenants: true } },
  ssn: 'drop',
  salary: 'mask',
  card: { readonly: { mask: { keep: 4 } }, admin: 'none' },
  'address.street': 'mask',
  'address.flats.code': 'drop',
  manager: 'mask',
  scan: 'mask',
};

const agent = (more: object = {}) => ({ tenantId: 'north', rateLimit: 1_000_000, ...more });
const AGENTS = {
  reader: agent(),
  writer: agent({ permissions: 'write' }),
  admin: agent({ permissions: 'admin' }),
  south: agent({ tenantId: 'south', permissions: 'admin' }),
  facets: agent({ masterAtlas: true }),
  // The rights of a user, in whose place it calls.
  ada: agent({ identity: { user: 'ada' } }),
};
export type CustomersAgent = keyof typeof AGENTS;

export const customersConfig = (endpoint: string) => ({
  agents: AGENTS,
  auth: Object.keys(AGENTS).map((name) => ({ apiKey: `key-${name}`, agent: name })),
  plugins: [fileURLToPath(new URL('../fixtures/plugins/returning-rows.mjs', import.meta.url))],
  embeddings: { endpoint, model: 'small', apiKey: 'k', dimensions: 3 },
  policy: {
    maskingKey: 'the-secret-behind-the-pseudonyms-of-tests',
    classes: {
      Customer: {
        masks: MASKS,
        searchable: { field: 'embedding', textFields: ['phone'], filterFields: ['city', 'email'] },
        tenantScope: { field: 'orgId', bypass: ['admin'] },
      },
      Order: {
        joinFields: ['title'],
        tenantScope: { field: 'orgId', bypass: ['admin'] },
      },
      Person: { masks: { phone: { hash: { domain: 'phone', acrossTenants: true } } }, tenantScope: null },
      _User: { masks: { email: { readonly: 'mask', admin: 'none' } } },
    },
  },
});
