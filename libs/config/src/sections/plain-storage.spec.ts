import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config-error.js';
import { readConfig } from '../load-config.js';
import { readDatabaseName } from './stores.js';

function errorsOf(options: Record<string, unknown>): readonly string[] {
  try {
    readConfig(options);
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

const PLAIN = { uri: 'mongodb://db/shop', storage: 'plain' };
const ORDER = {
  collection: 'orders',
  id: 'objectId',
  timestamps: { createdAt: 'created', updatedAt: 'modified' },
  properties: {
    customer: { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' },
    lines: { type: 'Array', of: { sku: 'String', qty: { type: 'Number' } } },
    total: { type: 'Number' },
  },
  fields: ['customer', 'total', 'lines'],
  filters: { total: { $gt: 0 } },
};

describe('a plain database', () => {
  it('lists its classes with the names of their collections and columns', () => {
    const { config, policy } = readConfig({ database: PLAIN, policy: { classes: { Order: ORDER } } });
    expect(config.database).toMatchObject({ name: 'shop', storage: 'plain' });
    expect(policy.switches.unlistedClasses).toBe('refuse');
    const order = policy.classes.get('Order');
    expect(order?.aliases.size).toBe(0);
    expect(order?.plain).toEqual({
      collection: 'orders',
      id: 'objectId',
      timestamps: { createdAt: 'created', updatedAt: 'modified' },
      properties: new Map<string, unknown>([
        ['customer', { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' }],
        [
          'lines',
          {
            type: 'Array',
            of: new Map([
              ['sku', { type: 'String' }],
              ['qty', { type: 'Number' }],
            ]),
          },
        ],
        ['total', { type: 'Number' }],
      ]),
    });
  });

  it('takes the names of the class and of Mongoose where none are given', () => {
    const { policy } = readConfig({ database: PLAIN, policy: { classes: { Product: {} } } });
    expect(policy.classes.get('_Product')).toMatchObject({
      hiding: 'no',
      plain: {
        collection: 'Product',
        id: null,
        timestamps: { createdAt: 'createdAt', updatedAt: 'updatedAt' },
      },
    });
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      'classes that are not listed',
      { policy: { unlistedClasses: 'allow' } },
      /^policy\.unlistedClasses: .*list each collection/,
    ],
    [
      'a Parse Server',
      { parse: { serverUrl: 'https://p/parse', appId: 'a', masterKey: 'k' } },
      /^database\.storage: cannot be plain beside parse\.serverUrl/,
    ],
    [
      'a Parse user',
      { agents: { a: { identity: { user: 'u1' } } } },
      /^agents\.a\.identity: .*\$agent: user/,
    ],
    ['a Parse role', { agents: { a: { identity: { role: 'ops' } } } }, /^agents\.a\.identity: /],
    ['a session', { agents: { a: { identity: { session: 'caller' } } }, auth: [] }, /^agents\.a\.identity: /],
    [
      'an impersonated user',
      { agents: { a: { identity: { impersonate: 'u1' } } } },
      /^agents\.a\.identity: /,
    ],
    [
      'a client without master key',
      { agents: { a: { clientMode: true } }, auth: [] },
      /^agents\.a\.clientMode: /,
    ],
    [
      'sessions as credentials',
      { agents: { a: {} }, auth: [{ parseSession: true, agent: 'a' }] },
      /^auth\.0\.parseSession: .*write apiKey, oauth or clientCertificate/,
    ],
  ])('does not go together with %s, and says what to write', (_, options, line) => {
    expect(errorsOf({ database: PLAIN, ...options })).toEqual(
      expect.arrayContaining([expect.stringMatching(line)]),
    );
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      'another name for a member, which masks of that name would miss',
      { properties: { lines: { type: 'Array', of: { pin: { type: 'String', field: 'p' } } } } },
      /\.properties\.lines\.of\.pin\.field: members keep their stored names: write 'p' instead of 'pin'/,
    ],
    ['a system collection', { collection: 'system.users' }, /\.collection: .*no collection that can be read/],
    ['a collection of Parse', { collection: '_User' }, /\.collection: .*write storage: parse/],
    ['the classes of Parse', { collection: '_SCHEMA' }, /\.collection: /],
    [
      'a type of Parse alone',
      { properties: { a: { type: 'Relation' } } },
      /properties\.a\.type: must be one of String,/,
    ],
    [
      'a reference to nothing',
      { properties: { a: { type: 'Pointer' } } },
      /properties\.a\.targetClass: is needed/,
    ],
    [
      'a target without a type',
      { properties: { a: { targetClass: 'B' } } },
      /properties\.a\.type: is needed/,
    ],
    [
      'members of a text',
      { properties: { a: { type: 'String', of: { b: 'String' } } } },
      /properties\.a\.of: /,
    ],
    [
      'members of an unknown type',
      { properties: { a: { type: 'Object', of: { b: 'Text' } } } },
      /a\.of\.b\.type: must be one of/,
    ],
    [
      'another name of _id',
      { properties: { a: { field: '_id' } } },
      /properties\.a\.field: '_id' is objectId/,
    ],
    [
      'a credential under another name',
      { properties: { a: { field: 'sessionToken' } } },
      /a\.field: .*internal/,
    ],
    [
      'a credential inside',
      { properties: { a: { type: 'Object', of: { b: { type: 'String', field: '_hashed_password' } } } } },
      /of\.b: .*internal/,
    ],
    [
      'its own id as a property',
      { properties: { objectId: { type: 'String' } } },
      /properties\.objectId: .*write id/,
    ],
    [
      'a time stamp as a property',
      { properties: { createdAt: { field: 'made' } } },
      /write timestamps: \{ createdAt/,
    ],
    [
      'one column under two names',
      { properties: { a: { field: 'x' }, b: { field: 'x' } } },
      /properties\.b\.field: names the stored column 'x'/,
    ],
    [
      'a time stamp under two names',
      { properties: { made: { field: 'createdAt' } } },
      /timestamps\.createdAt: names the stored column/,
    ],
  ])('has no class with %s', (_, entry, line) => {
    expect(errorsOf({ database: PLAIN, policy: { classes: { Order: entry } } })).toEqual(
      expect.arrayContaining([expect.stringMatching(line)]),
    );
  });

  it('refuses members that are nested without end', () => {
    let members: Record<string, unknown> = { leaf: 'String' };
    for (let depth = 0; depth < 12; depth += 1) members = { below: { type: 'Object', of: members } };
    const entry = { properties: { a: { type: 'Object', of: members } } };
    expect(errorsOf({ database: PLAIN, policy: { classes: { Order: entry } } })).toEqual([
      expect.stringMatching(/nested more than 8 levels/),
    ]);
  });
});

describe('a database of Parse', () => {
  const DATABASE = { uri: 'mongodb://db/shop' };

  it('may hold plain classes beside those of Parse, which exist where they are listed', () => {
    const classes = { Order: { storage: 'plain', collection: 'orders' }, Post: {} };
    const { policy } = readConfig({ database: DATABASE, policy: { classes } });
    expect(policy.switches.unlistedClasses).toBe('refuse');
    expect([...policy.classes.values()].map(({ plain }) => plain?.collection ?? null)).toEqual([
      'orders',
      null,
    ]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['collection', { collection: 'orders' }],
    ['id', { id: 'string' }],
    ['timestamps', { timestamps: null }],
    ['properties.a.of', { properties: { a: { of: { b: 'String' } } } }],
  ])('has no %s of a Parse class', (option, entry) => {
    expect(errorsOf({ database: DATABASE, policy: { classes: { Post: entry } } })).toEqual([
      expect.stringMatching(
        new RegExp(`^policy\\.classes\\.Post\\.${option.replaceAll('.', '\\.')}: .*storage: plain`),
      ),
    ]);
  });

  it('does not hand the rows of a Parse class to a plain one', () => {
    const classes = { Post: {}, Copy: { storage: 'plain', collection: 'Post' } };
    expect(errorsOf({ database: DATABASE, policy: { classes } })).toEqual([
      expect.stringMatching(/^policy\.classes\.Copy\.collection: .*ACLs/),
    ]);
    expect(errorsOf({ database: DATABASE, policy: { classes: { User: { storage: 'plain' } } } })).toEqual([
      expect.stringMatching(/^policy\.classes\.User\.storage: .*class of Parse's own/),
    ]);
  });
});

describe('the database of a URI', () => {
  it.each([
    ['mongodb://127.0.0.1:27017/shop', 'shop'],
    ['mongodb+srv://u:p%40ss@cluster.example.net/shop?retryWrites=true', 'shop'],
    ['mongodb://a:1,b:2,c:3/my%2Dshop?replicaSet=r', 'my-shop'],
    ['mongodb://%2Ftmp%2Fmongo.sock/shop', 'shop'],
    ['mongodb://127.0.0.1', 'parley'],
    ['mongodb://127.0.0.1/?directConnection=true', 'parley'],
    ['mongodb://u:p@h/admin', 'parley'],
    ['mongodb://h/a%2Fb', 'parley'],
    ['mongodb://h/%E0%A4%A', 'parley'],
    ['embedded', 'parley'],
    [null, 'parley'],
  ])('%s is %s', (uri, name) => {
    expect(readDatabaseName(uri)).toBe(name);
  });

  it('gives way to the name that is written', () => {
    expect(readConfig({ database: { uri: 'mongodb://h/shop', name: 'other' } }).config.database.name).toBe(
      'other',
    );
    expect(readConfig({ database: { uri: 'mongodb://h/shop' } }).config.database.name).toBe('shop');
  });
});
