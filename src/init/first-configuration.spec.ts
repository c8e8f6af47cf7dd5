import { Binary, Decimal128, MongoClient, ObjectId, UUID, type Db, type Document } from 'mongodb';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '#config';
import { DatabaseSurvey, MongoConnection, type MongoSchemaCatalogue } from '#data-mongo';
import { catalogueOf } from '#parley/instance';
import { bindPolicy, lintPolicy } from '#policy';
import { firstConfiguration } from './first-configuration.js';

type Row = Document & { _id?: unknown };

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;
let made = 0;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
});
afterAll(async () => {
  await client.close();
  await server.close();
});
beforeEach(() => void (db = client.db(`init-${(made += 1)}`)));

async function configured(): Promise<{ yaml: string; config: Document; classes: Record<string, Document> }> {
  const connection = new MongoConnection({ uri: server.uri, database: db.databaseName });
  try {
    const survey = await DatabaseSurvey.of(connection);
    const { yaml } = await firstConfiguration(survey, {
      uri: '${MONGODB_URI}',
      schema: './parley.schema.json',
    });
    const config = parse(yaml) as { policy: { classes: Record<string, Document> } } & Document;
    return { yaml, config, classes: config.policy.classes };
  } finally {
    await connection.close();
  }
}

/** What `policy check --strict` would end with 1 for. */
async function complaintsAbout(yaml: string): Promise<string[]> {
  const given = yaml
    .replace('${MONGODB_URI}', server.uri)
    .replace(/\$\{(MCP_API_KEY|PARLEY_TENANT)\}/g, 'given');
  const { policy, agents } = readConfig(parse(given) as Record<string, unknown>);
  const mongo = new MongoConnection({ uri: server.uri, database: db.databaseName });
  try {
    const catalogue = catalogueOf({ mongo, parse: null }, () => policy) as MongoSchemaCatalogue;
    const schemas = await catalogue.snapshot();
    const issues = [
      ...bindPolicy(policy, schemas, agents.values()).errors,
      ...lintPolicy(policy, agents.values(), new Set(), schemas),
    ];
    return [
      ...issues.map(({ path, message }) => `${path}: ${message}`),
      ...(await catalogue.problems()).map(({ text }) => text),
    ];
  } finally {
    await mongo.close();
  }
}

const fill = (collection: string, ...rows: Row[]) =>
  db.collection<Document & { _id: never }>(collection).insertMany(rows as (Document & { _id: never })[]);

describe('a first configuration', () => {
  it('has one agent that reads, with a key from the environment', async () => {
    await fill('orders', { number: 1 });
    const { config } = await configured();
    expect(config).toEqual({
      database: { uri: '${MONGODB_URI}', name: db.databaseName, storage: 'plain' },
      server: { maxResultBytes: 262_144 },
      agents: { reader: { permissions: 'readonly' } },
      auth: [{ apiKey: '${MCP_API_KEY}', agent: 'reader' }],
      policy: {
        unlistedClasses: 'refuse',
        classes: {
          Order: {
            description: 'Documents of orders',
            collection: 'orders',
            id: 'objectId',
            timestamps: null,
            properties: { number: { type: 'Number' } },
            fields: ['number'],
          },
        },
      },
    });
  });

  it.each<[string, unknown, unknown]>([
    ['text', 'a', { type: 'String' }],
    ['a decimal', Decimal128.fromString('1.10'), { type: 'Number' }],
    ['a truth', true, { type: 'Boolean' }],
    ['a time', new Date(), { type: 'Date' }],
    ['bytes', new Binary(Buffer.from('x')), { type: 'Bytes' }],
    ['an object', { a: 1, b: 'x', c: null }, { type: 'Object', of: { a: 'Number', b: 'String' } }],
    ['a list', ['a'], { type: 'Array' }],
    [
      'a list of objects',
      [{ qty: 1 }, { sku: 'x' }],
      { type: 'Array', of: { qty: 'Number', sku: 'String' } },
    ],
    [
      'objects in objects',
      { a: { b: 1 } },
      { type: 'Object', of: { a: { type: 'Object', of: { b: 'Number' } } } },
    ],
    ['a place', { type: 'Point', coordinates: [1, 2] }, undefined],
    ['a UUID of nothing', new UUID(), undefined],
  ])('knows a column of %s', async (_title, value, property) => {
    await fill('things', { column: value }, { column: null });
    const { classes } = await configured();
    expect(classes['Thing']?.['fields']).toEqual(['column']);
    expect((classes['Thing']?.['properties'] as Document | undefined)?.['column']).toEqual(property);
  });

  it('leaves the type of a column open that has several, and says so', async () => {
    await fill('things', { column: 1 }, { column: 'x' });
    const { yaml, classes } = await configured();
    expect(classes['Thing']).not.toHaveProperty('properties');
    expect(yaml).toContain('column holds values of several types: ');
  });

  it('takes columns from a validator, where there are no documents too', async () => {
    const properties = { year: { bsonType: ['int', 'null'] }, state: { enum: ['a', null] }, any: {} };
    await db.createCollection('books', { validator: { $jsonSchema: { properties } } });
    const { classes } = await configured();
    expect(classes['Book']).toEqual({
      description: 'Documents of books',
      collection: 'books',
      timestamps: null,
      properties: { year: { type: 'Number' }, state: { type: 'String' } },
      fields: ['year', 'state', 'any'],
    });
  });

  it.each<[string, () => unknown]>([
    ['ObjectId', () => new ObjectId()],
    ['UUID', () => new UUID()],
    ['text', () => `c${(made += 1)}`],
    ['number', () => (made += 1)],
  ])('follows references to an _id of kind %s, when the data has them', async (_kind, newId) => {
    const [a, b, nobody] = [newId(), newId(), newId()];
    await fill('customers', { _id: a, name: 'a' }, { _id: b, name: 'b' });
    const order = { customer_id: a, customerId: nobody, customers: [a, b], name: 'x' };
    await fill('orders', order, { ...order, customer_id: b });
    const { classes } = await configured();
    expect(classes['Order']?.['properties']).toMatchObject({
      customer: { type: 'Pointer', targetClass: 'Customer', field: 'customer_id' },
      customers: { type: 'Array', targetClass: 'Customer' },
    });
    expect(classes['Order']).not.toHaveProperty('properties.customerId.targetClass');
    expect(classes['Order']?.['fields']).toEqual(['customer', 'customerId', 'customers', 'name']);
  });

  it('finds what an ObjectId refers to whatever its column is called, and keeps the name where another column has it', async () => {
    const id = new ObjectId();
    await fill('people', { _id: id, name: 'a' });
    await fill('cases', { owner: id, person: 'x', personId: id });
    await fill('links', { owner_id: id, ownerId: id });
    const { classes } = await configured();
    expect(classes['Case']?.['properties']).toEqual({
      owner: { type: 'Pointer', targetClass: 'Person' },
      person: { type: 'String' },
      personId: { type: 'Pointer', targetClass: 'Person' },
    });
    expect(classes['Link']?.['fields']).toEqual(['owner', 'ownerId']);
  });

  it('names no class that is not listed', async () => {
    const id = new ObjectId();
    await fill('people', { _id: id, password: 'x' });
    await fill('cases', { owner: id });
    const { classes } = await configured();
    expect(classes).toMatchObject({ Case: { fields: ['owner'] } });
    expect(classes['Case']).not.toHaveProperty('properties');
  });

  it('lists no column that may be secret or personal, and shows no value of any', async () => {
    const secrets = {
      password: 'value-1',
      nested: { deep: { apiKey: 'value-2' } },
      people: [{ phone: 'value-3' }],
      reach: 'someone@value-4.org',
      '${HOME}': 'value-5',
      'a.b': 'value-6',
    };
    await fill('accounts', { ...secrets, plan: 'value-7' });
    const { yaml, classes } = await configured();
    expect(classes['Account']?.['fields']).toEqual(['plan']);
    expect(yaml).not.toContain('value-');
    expect(yaml).toContain('need another name (properties, with field): ${HOME}, a.b');
    for (const name of [
      'password (its name)',
      'nested (holds deep)',
      'people (holds phone)',
      'reach (looks like e-mail addresses)',
    ])
      expect(yaml.replace(/\n *# +/g, ' ')).toContain(name);
  });

  it('shows the rows of one tenant where a column may name it, which is no field', async () => {
    await fill('orders', { orgId: 'x', account_id: 'y', total: 1 });
    await fill('colours', { name: 'red' });
    const { yaml, config, classes } = await configured();
    expect(config['agents']).toEqual({ reader: { permissions: 'readonly', tenantId: '${PARLEY_TENANT}' } });
    expect(classes['Order']).toMatchObject({ fields: ['total'], tenantScope: { field: 'orgId' } });
    expect(classes['Colour']).not.toHaveProperty('tenantScope');
    expect(yaml).toContain('may name the tenant as well: account_id');
  });

  it('keeps what ordinary names hold: hooks, connection strings, prices and notes of a patient', async () => {
    await fill('things', {
      title: 'a',
      url: 'https://hooks.slack.com/services/T0/B0/value-1',
      target: 'postgres://app:value-2@db/x',
      dsn: 'value-3',
      accessCode: 'value-4',
      medicalNotes: 'value-5',
      costPrice: 1,
      place: '52.5200, 13.4050',
      reference: 'DE89370400440532013000',
    });
    const { yaml, classes } = await configured();
    expect(classes['Thing']?.['fields']).toEqual(['title']);
    expect(yaml).not.toContain('value-');
    expect(yaml.replace(/\n *# +/g, ' ')).toContain(
      'url (looks like webhooks), target (looks like URIs with a password)',
    );
  });

  it('marks long texts as large, and compares vectors without showing them', async () => {
    const embedding = Array.from({ length: 128 }, (_, n) => n / 128);
    await fill('notes', { body: 'word '.repeat(100), title: 'x', embedding, tenantId: 't', marks: [1, 2] });
    const { classes } = await configured();
    expect(classes['Note']).toMatchObject({
      fields: ['body', 'title', 'marks'],
      largeFields: ['body'],
      tenantScope: { field: 'tenantId' },
      searchable: { field: 'embedding', textFields: ['body', 'title'], filterFields: ['tenantId'] },
    });
  });

  it('is a configuration without an error or a warning, whatever columns and collections are called', async () => {
    const odd = fc.constantFrom(
      'constructor',
      '__proto__',
      'toString',
      'hasOwnProperty',
      'valueOf',
      'a b',
      'a.b',
      'a: b',
      '- a',
      'null',
      'true',
      'yes',
      '~',
      '1',
      '0x1F',
      '1e3',
      '&x',
      '*x',
      '!t',
      '%y',
      '@z',
      '`q`',
      '# c',
      "it's",
      '"q"',
      'größe',
      '名前',
      'имя',
      '',
      'objectId',
      'ACL',
      'createdAt',
      'updatedAt',
      '_rperm',
      'sessionToken',
      'orgId',
      'tenant',
      'embedding',
      '${HOME}',
    );
    const name = fc.oneof(odd, fc.string({ maxLength: 8 }));
    const value = fc.oneof(
      fc.constantFrom<unknown>(
        1,
        'x',
        true,
        null,
        new Date(0),
        [],
        ['a'],
        { a: 1 },
        [{ b: 'x' }],
        'y'.repeat(300),
      ),
      fc.constant(Array.from({ length: 64 }, () => 0.5)),
      fc.dictionary(
        odd.filter((one) => !one.startsWith('$')),
        fc.constantFrom(1, 'x'),
        { maxKeys: 3, noNullPrototype: true },
      ),
    );
    const columns = fc.dictionary(
      name.filter(
        (one) => one !== '_id' && one !== '__proto__' && !one.startsWith('$') && !one.includes('\0'),
      ),
      value,
      { minKeys: 1, maxKeys: 8, noNullPrototype: true },
    );
    const collection = odd.filter((one) => one !== '' && !one.startsWith('$') && !one.startsWith('system'));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(collection, columns, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
        async (collections) => {
          db = client.db(`init-${(made += 1)}`);
          await fill('orders', { number: 1 });
          for (const [of, row] of Object.entries(collections)) await fill(of, { ...row });
          const { yaml } = await configured();
          expect(await complaintsAbout(yaml)).toEqual([]);
          await db.dropDatabase();
        },
      ),
      {
        numRuns: 40,
        examples: [
          [Object.fromEntries([['constructor', { tenant: { sessionToken: 1 }, null: {} }]])],
          [Object.fromEntries([['constructor', { A: {}, orgId: null }]])],
          [{ things: { A: Array.from({ length: 64 }, () => 0.5) }, others: { tenant: 1 } }],
        ],
      },
    );
  });

  it('names the time stamps', async () => {
    const time = new Date();
    await fill('usual', { a: 1, createdAt: time, updatedAt: time });
    await fill('other', { a: 1, created_at: time, modified_at: time });
    await fill('text', { a: 1, createdAt: 'x' });
    const { classes } = await configured();
    expect(classes['Usual']).not.toHaveProperty('timestamps');
    expect(classes['Usual']?.['fields']).toEqual(['a']);
    expect(classes['Other']).toMatchObject({
      timestamps: { createdAt: 'created_at', updatedAt: 'modified_at' },
      fields: ['a'],
    });
    expect(classes['Text']).toMatchObject({ timestamps: null, fields: ['a'] });
  });

  it('lists a view over what is listed, and no view that shows what is not', async () => {
    await fill('customers', { name: 'a', email: 'a@b.c' });
    await db.createCollection('empty');
    const view = (name: string, viewOn: string, pipeline: Document[]) =>
      db.createCollection(name, { viewOn, pipeline });
    await view('named', 'customers', [{ $project: { name: 1 } }]);
    await view('again', 'named', []);
    await view('mails', 'customers', [{ $project: { m: { $toLower: '$email' } } }]);
    await view('nothing', 'empty', []);
    await view('joined', 'customers', [{ $lookup: { from: 'empty', pipeline: [], as: 'e' } }]);
    const { yaml, classes } = await configured();
    expect(Object.keys(classes).sort()).toEqual(['Again', 'Customer', 'Named']);
    expect(classes['Named']?.['fields']).toEqual(['name']);
    expect(yaml).toContain('mails: a view that mentions email, which is left out');
    expect(yaml).toContain('nothing: a view over empty, which is not listed');
    expect(yaml).toContain('joined: a view over empty, which is not listed');
    expect(yaml).not.toContain('system.views');
  });

  it.each<[string, Row[], string]>([
    ['is empty', [], 'it is empty'],
    ['has ids that are objects', [{ _id: { a: 1 }, b: 1 }], 'some _id in it are no ObjectId'],
    [
      'has ids of two kinds',
      [
        { _id: 1, b: 1 },
        { _id: 'x', b: 1 },
      ],
      'its _id are of several kinds',
    ],
    ['has secrets alone', [{ password: 'x' }], 'it has no column that agents should read'],
  ])('leaves a collection out that %s', async (_title, rows, why) => {
    const collection = await db.createCollection('things');
    if (rows.length > 0) await collection.insertMany(rows as Document[]);
    const { yaml, classes } = await configured();
    expect(classes).toEqual({});
    expect(yaml).toContain(`things: ${why}`);
  });

  it('gives every collection a class of its own, and writes hostile names as text', async () => {
    const hostile = 'x\n    evil: true # ${HOME}';
    await fill('order_items', { a: 1, [hostile]: 1, '${HOME}': 2 });
    await fill('orderItems', { a: 1 });
    await fill('users', { a: 1 });
    await fill('line: {x}', { a: 1 });
    const { yaml, config, classes } = await configured();
    expect(Object.keys(classes).sort()).toEqual(['LineX', 'OrderItem', 'OrderItems', 'Users']);
    expect(classes['LineX']).toMatchObject({ collection: 'line: {x}' });
    expect(JSON.stringify(config)).not.toContain('HOME');
    expect(yaml).not.toMatch(/^ *evil/m);
  });

  it('reads a database of Parse as one, and its other collections as plain ones', async () => {
    await fill(
      '_SCHEMA',
      { _id: 'Post', title: 'string', author: '*_User', email: 'string', objectId: 'string' },
      { _id: '_User', username: 'string' },
    );
    await fill('Post', { _id: 'p1', title: 'x', _p_author: '_User$u1' });
    await fill('_User', { _id: 'u1', username: 'x', _hashed_password: 'value-1' });
    await fill('_Join:likes:Post', { owningId: 'x' });
    await fill('audit_logs', { action: 'x' });
    // It would show rows whatever their ACL says.
    await db.createCollection('post_titles', { viewOn: 'Post', pipeline: [{ $project: { title: 1 } }] });
    const { config, yaml, classes } = await configured();
    expect(config['database']).toMatchObject({ storage: 'parse' });
    expect(config['policy']).toMatchObject({ unlistedClasses: 'refuse' });
    expect(classes).toEqual({
      Post: { description: 'Documents of Post', fields: ['title', 'author'] },
      AuditLog: {
        description: 'Documents of audit_logs',
        storage: 'plain',
        collection: 'audit_logs',
        id: 'objectId',
        timestamps: null,
        properties: { action: { type: 'String' } },
        fields: ['action'],
      },
    });
    expect(yaml).toContain("_User: a class of Parse's own");
    expect(yaml).not.toContain('value-');
  });

  it('looks at a bounded part of what there is', async () => {
    const wide = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`key${n}`, n]));
    await fill('wide', wide);
    await fill('long', ...Array.from({ length: 500 }, (_, n) => ({ n, text: 'x'.repeat(100) })));
    const { yaml, classes } = await configured();
    expect(classes['Wide']?.['fields']).toHaveLength(100);
    expect(yaml).toContain('There are more columns than were looked at.');
    expect(classes['Long']?.['fields']).toEqual(['n', 'text']);
  });
});
