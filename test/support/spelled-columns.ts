/** A class whose columns are written in every way, colliding pairs among them; every value tells its column and row. */
const text = { type: 'String' };
const TEXTS = [
  'SSN',
  'ssn',
  'sSN',
  'social_no',
  'socialNo',
  'full_text',
  'Title',
  'line_2',
  'line2',
  'org_id',
] as const;

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });

export const value = (column: string, row: number) => `${column}~value~${row}`;
/** Of a person, which no other class has. */
export const ofPerson = (column: string, row: number) => `person~${value(column, row)}`;

const row = (index: number, prefix: string, more: object, tell = prefix === 'p' ? ofPerson : value) => ({
  objectId: `${prefix}${index}`,
  ...Object.fromEntries(TEXTS.map((name) => [name, tell(name, index)])),
  created_on: date(`200${index}-01-01T00:00:00.000Z`),
  createdOn: date(`203${index}-01-01T00:00:00.000Z`),
  Meta_Data: { Inner_Key: tell('Inner', index) },
  is_deleted: index === 3,
  ...more,
});

const fields = {
  ...Object.fromEntries(TEXTS.map((name) => [name, text])),
  created_on: { type: 'Date' },
  createdOn: { type: 'Date' },
  Meta_Data: { type: 'Object' },
  is_deleted: { type: 'Boolean' },
  best_friend: { type: 'Pointer', targetClass: 'Person' },
  all_friends: { type: 'Array' },
};

/** Of three rows the second is globex's, and the third is deleted. */
const rows = (prefix: string) =>
  [1, 2, 3].map((index) =>
    row(index, prefix, {
      org_id: index === 2 ? 'globex' : 'acme',
      best_friend: pointer('Person', `p${(index % 3) + 1}`),
      all_friends: [pointer('Person', 'p2')],
    }),
  );

const CLASSES = { Person: 'p', Listed: 'l', Deal: 'd', Post: 'o', Plain: 'n' } as const;

export const SPELLED = {
  schemas: Object.keys(CLASSES).map((className) => ({ className, fields })),
  objects: Object.fromEntries(Object.entries(CLASSES).map(([name, prefix]) => [name, rows(prefix)])),
};

const agent = (more: object = {}) => ({ rateLimit: 1_000_000, ...more });
const AGENTS = {
  reader: agent(),
  filtered: agent({
    filters: { Plain: { org_id: { $ne: 'globex' } }, Person: { org_id: { $ne: 'globex' } } },
  }),
  acme: agent({ tenantId: 'acme', permissions: 'admin' }),
};
export type SpelledAgent = keyof typeof AGENTS;

export const spelledConfig = {
  agents: AGENTS,
  auth: Object.keys(AGENTS).map((name) => ({ apiKey: `key-${name}`, agent: name })),
  policy: {
    maskingKey: 'the-secret-behind-the-pseudonyms-of-tests',
    classes: {
      Person: {
        masks: { SSN: 'drop', social_no: 'mask', 'Meta_Data.Inner_Key': 'mask' },
        properties: { all_friends: { targetClass: 'Person' } },
      },
      Listed: {
        fields: ['full_text', 'created_on', 'ssn'],
        joinFields: ['full_text'],
        largeFields: ['full_text'],
      },
      Deal: { tenantScope: { field: 'org_id' } },
      Post: {
        canonicalFilter: { is_deleted: { $ne: true } },
        properties: { all_friends: { targetClass: 'Person' } },
      },
    },
  },
};
