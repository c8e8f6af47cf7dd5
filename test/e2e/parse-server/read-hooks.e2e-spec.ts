import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, GATES_OPEN, type Service, startService, type ToolAnswer } from '../../support/service.js';

const cloud = fileURLToPath(new URL('../../fixtures/cloud/triggers.cjs', import.meta.url));

/** Cloud Code shows it to nobody. */
const SSN = 'ssn-4711';
/** A patient whom Cloud Code shows to nobody. */
const CLOSED = 'Quentin';

const patient = (id: string) => ({ __type: 'Pointer', className: 'Patient', objectId: id });
const at = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
const SEED = {
  schemas: [
    {
      className: 'Patient',
      fields: {
        name: { type: 'String' },
        ssn: { type: 'String' },
        ward: { type: 'String' },
        seen: { type: 'Date' },
        home: { type: 'GeoPoint' },
      },
    },
    {
      className: 'Visit',
      fields: {
        room: { type: 'Number' },
        at: { type: 'GeoPoint' },
        contact: { type: 'String' },
        patient: { type: 'Pointer', targetClass: 'Patient' },
        cared: { type: 'Relation', targetClass: 'Patient' },
      },
    },
  ],
  users: [{ objectId: 'ada', username: 'ada', ACL: { ada: { read: true, write: true } } }],
  sessions: [{ sessionToken: 'r:session-of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Patient: [
      { objectId: 'p1', name: 'Anna', ssn: SSN, ward: 'north', home: at(1, 1) },
      { objectId: 'p2', name: 'Bert', ssn: `${SSN}-2`, ward: 'north', home: at(1, 1) },
      { objectId: 'p3', name: CLOSED, ssn: `${SSN}-3`, ward: 'closed', home: at(1, 1) },
    ],
    Visit: [
      { objectId: 'v1', room: 1, contact: SSN, patient: patient('p1'), at: at(1, 1) },
      { objectId: 'v3', room: 3, contact: `${SSN}-3`, patient: patient('p3'), at: at(1, 1) },
    ],
  },
};

const shape = { rateLimit: 1_000_000, permissions: 'write' };
const key = (agent: string) => ({ apiKey: `key-${agent}`, agent });
const CONFIG = {
  agents: {
    operator: shape,
    session: { ...shape, identity: { session: 'caller' } },
    client: { ...shape, clientMode: true, allowMutations: true },
    asAda: { ...shape, identity: { user: 'ada' } },
  },
  auth: ['operator', 'session', 'client', 'asAda'].map(key),
  policy: { unlistedClasses: 'allow', requireApprovalFor: [] as string[] },
};
const SESSION = { 'X-MCP-API-Key': 'key-session', 'X-Parse-Session-Token': 'r:session-of-ada' };
const CLIENT = { 'X-MCP-API-Key': 'key-client', 'X-Parse-Session-Token': 'r:session-of-ada' };
const AS_ADA = { 'X-MCP-API-Key': 'key-asAda' };
const OPERATOR = { 'X-MCP-API-Key': 'key-operator' };

/** Parse Server has no form for it. */
const onlyMongo = (field: string) => ({
  [field]: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: SQUARE } } },
});
const SQUARE = [
  [
    [0, 0],
    [0, 2],
    [2, 2],
    [2, 0],
    [0, 0],
  ],
];
const joined = (stage: object) => [
  { $lookup: { from: 'Patient', localField: 'patient', foreignField: '_id', as: 'who' } },
  stage,
];
const ofClosed = { className: 'Patient', where: { name: CLOSED } };

let parse: ParseUnderTest;
let service: Service;
let declared: Service;

const start = (policy: object, hooks: object = {}) =>
  startService({
    config: {
      ...CONFIG,
      policy: { ...CONFIG.policy, ...policy },
      parse: { ...parse.cautiousConfig, ...hooks },
      database: { uri: parse.databaseUri, name: parse.databaseName },
    },
    env: GATES_OPEN,
  });

beforeAll(async () => {
  parse = await ParseUnderTest.start({ cloud });
  await parse.fill(SEED);
  service = await start({});
}, 120_000);
afterAll(async () => {
  await declared?.stop();
  await service?.stop();
  await parse?.stop();
});

const call = (name: string, args: unknown, headers: Record<string, string>, to = service) =>
  callTool(to, name, args, headers);
const showsNothing = (answer: ToolAnswer) => {
  expect(answer.wire).not.toContain(SSN);
  expect(answer.wire).not.toContain(CLOSED);
};
const needsStatement = (answer: ToolAnswer, className = 'Patient') => {
  showsNothing(answer);
  expect([answer.code, answer.details?.['kind']]).toEqual(['access_denied', 'read_hooks']);
  expect(answer.text).toContain(`policy.classes.${className}.readHooks: none`);
};

/** Every way to the values and rows that Cloud Code hides, which only MongoDB can answer. */
const PAST_THE_HOOKS: readonly (readonly [string, string, object])[] = [
  ['distinct', 'distinct', { class_name: 'Patient', field: 'ssn' }],
  ['group_by', 'group_by', { class_name: 'Patient', field: 'ward', operation: 'count' }],
  ['group_by_date', 'group_by_date', { class_name: 'Patient', field: 'createdAt', interval: 'day' }],
  ['aggregate', 'aggregate', { class_name: 'Patient', pipeline: [{ $project: { ssn: 1, name: 1 } }] }],
  ['a join', 'aggregate', { class_name: 'Visit', pipeline: joined({ $project: { who: 1 } }) }],
  [
    'a union',
    'aggregate',
    { class_name: 'Visit', pipeline: [{ $match: {} }, { $unionWith: { coll: 'Patient' } }] },
  ],
  [
    'a join inside a facet',
    'aggregate',
    { class_name: 'Visit', pipeline: [{ $facet: { all: joined({ $count: 'n' }) } }] },
  ],
  [
    'an export of a pipeline',
    'export_data',
    { class_name: 'Patient', pipeline: [{ $group: { _id: '$ssn' } }], format: 'csv' },
  ],
  ['a where without a REST form', 'query_class', { class_name: 'Patient', where: onlyMongo('home') }],
  ['its count', 'count_objects', { class_name: 'Patient', where: onlyMongo('home') }],
  ['its export', 'export_data', { class_name: 'Patient', where: onlyMongo('home'), format: 'csv' }],
  [
    'a subquery without one',
    'query_class',
    {
      class_name: 'Visit',
      where: { patient: { $inQuery: { className: 'Patient', where: onlyMongo('home') } } },
    },
  ],
];

describe('Cloud Code that decides what users read', { timeout: 60_000 }, () => {
  it.each(PAST_THE_HOOKS)('is not passed by in %s of a session', async (_title, tool, args) => {
    const answer = await call(tool, args, SESSION);
    expect(answer.isError).toBe(true);
    needsStatement(answer);
  });

  it('is not passed by in an include that only MongoDB can answer', async () => {
    const args = { class_name: 'Visit', where: onlyMongo('at'), include: ['patient'] };
    const answer = await call('query_class', args, SESSION);
    showsNothing(answer);
    expect(answer.code).toBe('access_denied');
  });

  it.each(PAST_THE_HOOKS)('is not passed by in %s of a caller in client mode', async (_title, tool, args) => {
    const answer = await call(tool, args, CLIENT);
    showsNothing(answer);
    expect(answer.isError).toBe(true);
  });

  it.each([
    ['query_class', { class_name: 'Patient', order: 'name' }],
    ['query_class', { class_name: 'Patient', where: { objectId: { $in: ['p1', 'p3'] } } }],
    ['query_class', { class_name: 'Visit', include: ['patient'] }],
    ['query_class', { class_name: 'Visit', where: { patient: { $inQuery: ofClosed } } }],
    [
      'query_class',
      {
        class_name: 'Visit',
        keys: ['room'],
        where: { contact: { $select: { query: { className: 'Patient', where: {} }, key: 'ssn' } } },
      },
    ],
    ['get_objects', { class_name: 'Patient', ids: ['p1', 'p3'] }],
    ['get_object', { class_name: 'Patient', object_id: 'p3' }],
    ['get_sample_objects', { class_name: 'Patient' }],
    ['export_data', { class_name: 'Patient', format: 'csv' }],
    ['update_object', { class_name: 'Patient', object_id: 'p1', fields: { name: 'Anna' } }],
  ] as const)('decides in %s %j', async (tool, args) => {
    for (const headers of [SESSION, CLIENT]) {
      const answer = await call(tool, args, headers);
      // Visits name numbers and point to everybody themselves.
      const shown = JSON.stringify(answer.data).replaceAll(/"contact":"[^"]*"/g, '');
      expect(shown).not.toContain(SSN);
      expect(shown).not.toContain(CLOSED);
      if ('where' in args && args.class_name === 'Visit')
        expect((answer.data['results'] as unknown[]).length).toBe(0);
    }
  });

  it('decides about the owner of a relation, and about its members', async () => {
    const count = (args: object) => call('count_objects', args, SESSION);
    const members = {
      $relatedTo: { object: { __type: 'Pointer', className: 'Visit', objectId: 'v1' }, key: 'cared' },
    };
    await parse.database
      .collection('_Join:cared:Visit')
      .insertMany(['p1', 'p3'].map((relatedId) => ({ owningId: 'v1', relatedId })) as never[]);
    expect((await count({ class_name: 'Patient', where: members })).data['count']).toBe(1);
    expect(
      (await call('count_objects', { class_name: 'Patient', where: members }, OPERATOR)).data['count'],
    ).toBe(2);
  });

  it('binds neither the master key nor users whose rights Parley resolves itself', async () => {
    const distinct = { class_name: 'Patient', field: 'ssn' };
    for (const headers of [OPERATOR, AS_ADA])
      expect((await call('distinct', distinct, headers)).wire).toContain(SSN);
  });

  it('is said to be absent by the operator, of one class or of all', async () => {
    declared = await start({ classes: { Visit: { readHooks: 'none' } } });
    const counted = { class_name: 'Visit', field: 'room', operation: 'count' };
    expect((await call('group_by', counted, SESSION, declared)).isError).toBe(false);
    needsStatement(await call('distinct', { class_name: 'Patient', field: 'name' }, SESSION, declared));
    const pipeline = joined({ $project: { who: 1 } });
    needsStatement(await call('aggregate', { class_name: 'Visit', pipeline }, SESSION, declared));
    await declared.stop();
    declared = await start({ classes: { Patient: { readHooks: 'possible' } } }, { readHooks: 'none' });
    expect((await call('group_by', counted, SESSION, declared)).isError).toBe(false);
    needsStatement(await call('distinct', { class_name: 'Patient', field: 'name' }, SESSION, declared));
  });
});
