import { readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  GATES_OPEN,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const CLI = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));

/** Codes that rows hold: in no answer, log or record of somebody who did not send them, and in no log at all. */
const OWN = 'code-of-an-own-row';
const FOREIGN = 'code-of-a-foreign-row';
const text = { type: 'String' };
const row = (objectId: string, orgId: string, code: string) => ({ objectId, orgId, code, title: objectId });
const OPEN_TO_ALL = { '*': true };
const RIGHTS = {
  find: OPEN_TO_ALL,
  get: OPEN_TO_ALL,
  count: OPEN_TO_ALL,
  create: OPEN_TO_ALL,
  update: OPEN_TO_ALL,
};

const SEED = {
  schemas: ['Item', 'Part', 'Loose'].map((className) => ({
    className,
    fields: { title: text, code: text, orgId: text },
    classLevelPermissions: RIGHTS,
  })),
  users: [{ objectId: 'ada', username: 'ada' }],
  objects: {
    Item: [row('item1', 'north', OWN), row('item2', 'north', 'x'), row('item3', 'south', FOREIGN)],
    Part: [row('part1', 'north', OWN), row('part2', 'north', 'x'), row('part3', 'south', FOREIGN)],
    Loose: [
      row('loose1', 'north', OWN),
      row('loose2', 'north', 'x'),
      { ...row('loose3', 'south', FOREIGN), ACL: { eve: { read: true } } },
    ],
  },
};

const fields = ['title', 'code'];
const plain = (collection: string) => ({
  storage: 'plain',
  collection,
  id: 'string',
  fields,
  properties: { title: { type: 'String' }, code: { type: 'String' }, orgId: { type: 'String' } },
  tenantScope: { field: 'orgId' },
});
const CLASSES = {
  Item: { fields, tenantScope: { field: 'orgId' } },
  Part: { fields, tenantScope: { field: 'orgId' } },
  Loose: { fields },
  Article: plain('articles'),
};
const AGENTS = {
  tenant: { tenantId: 'north', permissions: 'write' },
  filtered: { tenantId: 'north', permissions: 'admin', filters: { Loose: { orgId: 'north' } } },
  user: { tenantId: 'north', permissions: 'write', identity: { user: 'ada' } },
  owner: { permissions: 'admin' },
};
type Name = keyof typeof AGENTS;

let database: Database;
let client: MongoClient;
let service: Service;
const folder = makeFolder('unique');
const audit = join(folder, 'audit.jsonl');
const config = () => ({
  database: { uri: database.uri, name: 'parley' },
  agents: AGENTS,
  auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `the-key-of-${agent}`, agent })),
  audit: { sinks: [{ kind: 'file', path: audit }] },
  policy: { unlistedClasses: 'refuse', classes: CLASSES },
});

beforeAll(async () => {
  database = await startDatabase(SEED);
  client = await MongoClient.connect(database.uri);
  const db = client.db('parley');
  await db.collection<{ _id: string }>('articles').insertMany([
    { _id: 'article1', orgId: 'north', code: OWN },
    { _id: 'article2', orgId: 'north', code: 'x' },
    { _id: 'article3', orgId: 'south', code: FOREIGN },
  ] as never);
  for (const name of ['Item', 'Loose', 'articles'])
    await db.collection(name).createIndex({ code: 1 }, { unique: true });
  await db.collection('Part').createIndex({ orgId: 1, code: 1 }, { unique: true });
  service = await startService({ env: GATES_OPEN, config: config() });
}, 60_000);
afterAll(async () => {
  await service?.stop();
  await client?.close();
  await database?.stop();
});

const call = (agent: Name, tool: string, args: object) =>
  callTool(service, tool, args, { 'X-MCP-API-Key': `the-key-of-${agent}` });

/** The ways to send a code. */
const writes = (className: string, id: string, code: string) =>
  [
    ['create_object', { class_name: className, fields: { title: 't', code } }],
    ['create_object', { class_name: className, fields: { code }, idempotency_key: `${className}-${code}` }],
    ['update_object', { class_name: className, object_id: id, fields: { code } }],
    [
      'update_object',
      { class_name: className, object_id: id, fields: { code }, idempotency_key: `${id}-${code}` },
    ],
  ] as const;

const ONE_FORM =
  'the database refused the row: send every column that the class requires, with values that it permits';

describe('a write of a value that a unique index holds', () => {
  it.each<[Name, string, string]>([
    ['tenant', 'Item', 'item2'],
    ['tenant', 'Article', 'article2'],
    ['filtered', 'Loose', 'loose2'],
    ['user', 'Loose', 'loose2'],
    ['user', 'Item', 'item2'],
  ])(
    'is refused for %s in %s as any row is that the database refuses, whosever row holds it',
    async (agent, className, id) => {
      for (const code of [OWN, FOREIGN])
        for (const [tool, args] of writes(className, id, code)) {
          const answer = await call(agent, tool, args);
          expect([tool, answer.isError, answer.code]).toEqual([tool, true, 'parse_error']);
          expect(answer.text).toContain(ONE_FORM);
          expect(answer.text).not.toMatch(/unique|duplicate|already|E11000/i);
        }
    },
  );

  it('is named to whoever may read every row that it can collide with', async () => {
    for (const [agent, className, id] of [
      ['owner', 'Loose', 'loose2'],
      ['tenant', 'Part', 'part2'],
    ] as const)
      for (const [tool, args] of writes(className, id, OWN)) {
        const answer = await call(agent, tool, args);
        expect(answer.text).toContain('A row with this unique value already exists');
      }
    expect(await call('tenant', 'update_object', writes('Part', 'part2', FOREIGN)[2][1])).toMatchObject({
      isError: false,
    });
  });

  it('stands in no log and no record', async () => {
    await call('tenant', 'create_object', { class_name: 'Item', fields: { code: FOREIGN } });
    await call('owner', 'create_object', { class_name: 'Loose', fields: { code: FOREIGN } });
    const { stderr } = service.output();
    for (const told of [stderr, readFileSync(audit, 'utf8')]) {
      expect(told).toContain('create_object');
      expect(told).not.toMatch(/dup key|code-of-a/);
    }
  });
});

describe('an agent that a filter limits', () => {
  it('does not remove a class, whether it has rows or not', async () => {
    const full = await call('filtered', 'delete_class', { class_name: 'Loose' });
    expect(full).toMatchObject({ isError: true, code: 'access_denied' });
    expect(full.text).not.toContain('still has objects');
    expect((await call('owner', 'delete_class', { class_name: 'Loose' })).text).toContain(
      'still has objects',
    );
  });
});

it('policy check and doctor name unique indexes without the column of the tenant', () => {
  const file = join(folder, 'parley.yaml');
  writeFileSync(file, stringify(config()));
  for (const command of [
    ['policy', 'check'],
    ['doctor', '--json'],
  ]) {
    const { stdout, stderr } = spawnSync(process.execPath, [CLI, ...command, '--config', file], {
      encoding: 'utf8',
    });
    const told = stdout + stderr;
    expect(told).toMatch(/Item\.tenantScope: the unique index 'code_1' \(code\) does not contain 'orgId'/);
    expect(told).toMatch(/Article\.tenantScope: the unique index/);
    expect(told).not.toMatch(/(Part|Loose)\.tenantScope: the unique/);
  }
});
