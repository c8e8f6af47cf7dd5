import { MongoClient } from 'mongodb';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  type Database,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const SOON = { timeout: 60_000, interval: 25 };
const text = { type: 'String' };
const pointer = { __type: 'Pointer', className: 'Person', objectId: 'p1' };
const SEED = {
  schemas: [
    { className: 'Person', fields: { name: text, social_no: text, fullText: text } },
    { className: 'Post', fields: { title: text, author: { type: 'Pointer', targetClass: 'Person' } } },
  ],
  objects: {
    Person: [{ objectId: 'p1', name: 'Ada', social_no: 'S3CRET', fullText: 'x' }],
    Post: [{ objectId: 'o1', title: 'first', author: pointer }],
  },
};
/** Each names what the class does not have. */
const MISTAKES: readonly (readonly [string, object, object, string])[] = [
  ['a mask', { masks: { socialNo: 'drop' } }, {}, 'policy.classes.Person.masks.socialNo'],
  ['fields', { fields: ['full_texts'] }, {}, 'policy.classes.Person.fields'],
  ['joinFields', { joinFields: ['Names'] }, {}, 'policy.classes.Person.joinFields'],
  ['largeFields', { largeFields: ['NAME'] }, {}, 'policy.classes.Person.largeFields'],
  [
    'a default view',
    { canonicalFilter: { isDeleted: { $ne: true } } },
    {},
    'policy.classes.Person.canonicalFilter',
  ],
  ['a tenant', { tenantScope: { field: 'org' } }, {}, 'policy.classes.Person.tenantScope.field'],
  ['a vector', { searchable: { field: 'vec' } }, {}, 'policy.classes.Person.searchable.field'],
  ['a row filter', {}, { Person: { SOCIAL_NO: { $ne: 'x' } } }, 'agents.reader.filters.Person'],
];
const configOf = (person: object, filters: object = {}) => ({
  agents: { reader: { rateLimit: 1_000_000, filters }, admin: { permissions: 'admin' } },
  auth: [
    { apiKey: 'admin', agent: 'admin' },
    { anonymous: true, agent: 'reader' },
  ],
  policy: { unlistedClasses: 'allow', classes: { Person: person } },
});

async function runCli(folder: string, args: readonly string[]) {
  const { code, stdout, stderr } = await runCommand(args, '', { cwd: folder });
  return { code, output: stdout + stderr };
}

describe('a rule on a field that its class does not have', { timeout: 120_000 }, () => {
  it.each(MISTAKES)('stops the start: %s', async (_, person, filters, path) => {
    const { code, stderr } = await startAndFail({ config: configOf(person, filters), seed: SEED });
    expect(code).toBe(1);
    const lines = stderr.split('\n').filter((line) => line.includes(`${path}:`));
    expect(lines).toEqual([expect.stringContaining("in class 'Person'")]);
  });

  it('stops the command line and the pipe, and is an error to check and doctor', async () => {
    const folder = makeFolder('names');
    writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
    const database = { uri: 'embedded', seed: './seed.json' };
    writeFileSync(
      join(folder, 'parley.yaml'),
      stringify({ ...configOf({ masks: { socialNo: 'drop' } }), database, server: { port: 0 } }),
    );
    for (const args of [
      ['policy', 'check'],
      ['doctor'],
      ['tool', 'query_class', JSON.stringify({ class_name: 'Person' }), '--agent', 'reader'],
      ['stdio'],
    ]) {
      const { code, output } = await runCli(folder, args);
      expect([args, code]).toEqual([args, 1]);
      expect(output).toContain("policy.classes.Person.masks.socialNo: the database has no field 'socialNo'");
      expect(output).toContain("'social_no'");
    }
  });

  it('stops no start where the class does not exist', async () => {
    const config = {
      ...configOf({}),
      policy: { unlistedClasses: 'allow', classes: { Later: { masks: { any: 'drop' } } } },
    };
    const service = await startService({ config, seed: SEED });
    const { isError } = await callTool(service, 'query_class', { class_name: 'Person' });
    await service.stop();
    expect(isError).toBe(false);
  });
});

describe('a service that runs', { timeout: 120_000 }, () => {
  let database: Database;
  let client: MongoClient;
  let service: Service;
  const config = (person: object) => ({
    ...configOf(person),
    database: { uri: database.uri, name: 'parley' },
    reload: { interval: 0.1 },
  });
  beforeAll(async () => {
    database = await startDatabase(SEED);
    client = new MongoClient(database.uri);
    service = await startService({
      config: config({ masks: { social_no: 'drop' } }),
      env: { PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true', PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true' },
    });
  });
  afterAll(async () => {
    await service?.stop();
    await client?.close();
    await database?.stop();
  });
  const schema = () => client.db('parley').collection<{ _id: string }>('_SCHEMA');

  /** The schema is read again after a class was made. */
  let made = 0;
  const readAnew = async () => {
    const class_name = `Scratch${(made += 1)}`;
    const { code } = await callTool(service, 'create_class', { class_name }, { 'X-MCP-API-Key': 'admin' });
    expect(code).toBeUndefined();
  };

  const asked: readonly (readonly [string, object])[] = [
    ['query_class', { class_name: 'Person' }],
    ['get_object', { class_name: 'Person', object_id: 'p1' }],
    ['count_objects', { class_name: 'Person' }],
    ['get_schema', { class_name: 'Person' }],
    ['aggregate', { class_name: 'Person', pipeline: [{ $match: {} }] }],
    ['aggregate', { class_name: 'Post', pipeline: [{ $lookup: { from: 'Person', pipeline: [], as: 'x' } }] }],
    ['query_class', { class_name: 'Post', include: ['author'] }],
    ['export_data', { class_name: 'Person' }],
    ['distinct', { class_name: 'Person', field: 'name' }],
  ];

  it('refuses a reload that does not fit, and serves what it served', async () => {
    service.reconfigure(config({ masks: { socialNo: 'drop' } }));
    await vi.waitFor(
      () =>
        expect(service.output().stderr).toContain(
          'policy.classes.Person.masks.socialNo: the database has no field',
        ),
      SOON,
    );
    const { data, wire } = await callTool(service, 'query_class', { class_name: 'Person' });
    expect(data['results']).toMatchObject([{ name: 'Ada' }]);
    expect(wire).not.toContain('S3CRET');
    service.reconfigure(config({ masks: { social_no: 'drop' } }));
  });

  it('refuses the class after a change of the schema, until it fits again', async () => {
    await schema().updateOne({ _id: 'Person' }, { $rename: { social_no: 'socialNumber' } });
    await client
      .db('parley')
      .collection('Person')
      .updateMany({}, { $rename: { social_no: 'socialNumber' } });
    const kindOf = async () =>
      (await callTool(service, 'query_class', { class_name: 'Person' })).details?.['kind'];
    await readAnew();
    expect(await kindOf()).toBe('misconfigured_class');
    for (const [tool, args] of asked) {
      const answer = await callTool(service, tool, args);
      expect([tool, args, answer.code]).toEqual([tool, args, 'access_denied']);
      expect(answer.wire).not.toMatch(/S3CRET|social/i);
    }
    const listed = await callTool(service, 'get_all_schemas');
    expect(listed.wire).not.toContain('Person');
    const plain = await callTool(service, 'query_class', { class_name: 'Post' });
    expect(plain.isError).toBe(false);
    expect(plain.wire).not.toContain('p1');
    expect(service.output().stderr).toMatch(/class 'Person' is refused to agents: .*masks\.social_no/);
    await schema().updateOne({ _id: 'Person' }, { $rename: { socialNumber: 'social_no' } });
    await client
      .db('parley')
      .collection('Person')
      .updateMany({}, { $rename: { socialNumber: 'social_no' } });
    await readAnew();
    expect(await kindOf()).toBeUndefined();
  });
});
