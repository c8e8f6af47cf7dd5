import { MongoClient } from 'mongodb';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';
import { isRefused, type Question } from './questions.js';
import {
  AGENTS,
  ATTACKERS,
  HIDDEN,
  OPERATOR,
  PROTECTED_ROWS_SEED,
  PROTECTED_ROWS_CONFIG,
  withKey,
  withSession,
} from '../../fixtures/protected-rows.fixture.js';

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(PROTECTED_ROWS_SEED);
  service = await startService({
    config: {
      ...PROTECTED_ROWS_CONFIG,
      agents: { ...PROTECTED_ROWS_CONFIG.agents, admin: { permissions: 'admin', rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'key-admin', agent: 'admin' }, ...PROTECTED_ROWS_CONFIG.auth],
    },
    env: {
      MONGODB_URI: database.uri,
      PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
      PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
    },
  });
});

// Parley has no endpoint that answers with the caller's own session. It has the class `_Session`, once the operator shows
// it, and the tools and pointers that lead to it.
describe('GHSA-g4v2-qx3q-4p64: protected fields of the caller’s own session', () => {
  const sessions = (more: object = {}) => ({ class_name: '_Session', ...more });
  const readings: Question[] = [
    ['a find', 'query_class', sessions()],
    ['a find of that field', 'query_class', sessions({ keys: ['deviceNote'] })],
    ['a row by id', 'get_object', sessions({ object_id: 'ownSession' })],
    ['rows by ids', 'get_objects', sessions({ ids: ['ownSession'] })],
    ['samples', 'get_sample_objects', sessions()],
    ['an included row', 'query_class', { class_name: 'Card', include: ['session'] }],
    ['an included row of one', 'get_object', { class_name: 'Card', object_id: 'c1', include: ['session'] }],
    ['an export', 'export_data', sessions({ format: 'json' })],
    ['a pipeline', 'aggregate', sessions({ pipeline: [{ $addFields: { all: '$$ROOT' } }] })],
    [
      'a pipeline that spells columns',
      'aggregate',
      sessions({ pipeline: [{ $project: { all: { $objectToArray: '$$ROOT' } } }] }),
    ],
    [
      'a join',
      'aggregate',
      {
        class_name: 'Card',
        pipeline: [{ $lookup: { from: '_Session', let: {}, pipeline: [], as: 'sessions' } }],
      },
    ],
  ];

  it('the attacks ask something: the master key reads the field, its owner the session', async () => {
    const master = await callTool(service, 'query_class', sessions(), OPERATOR);
    expect(master.data['results']).toHaveLength(2);
    expect(master.wire).toContain(HIDDEN);
    for (const [, headers] of ATTACKERS.filter(([who]) => who !== 'a role')) {
      const own = await callTool(service, 'query_class', sessions(), headers);
      expect(own.data['results']).toMatchObject([{ objectId: 'ownSession' }]);
    }
  });

  describe.each(ATTACKERS)('asked by %s', (_, headers) => {
    it.each(readings)('%s does not show them, nor another user’s session', async (_way, tool, args) => {
      const answer = await callTool(service, tool, args, headers);
      expect(answer.wire).not.toContain(HIDDEN);
      expect(answer.wire).not.toContain('hersession');
    });

    it('another user’s session is not got by its id', async () => {
      const answer = await callTool(service, 'get_object', sessions({ object_id: 'hersession' }), headers);
      expect(answer.isError).toBe(true);
    });
  });

  it.each(AGENTS)('%s cannot group or filter by them', async (_, headers) => {
    for (const [tool, args] of [
      ['group_by', sessions({ field: 'deviceNote' })],
      ['distinct', sessions({ field: 'deviceNote' })],
      ['count_objects', sessions({ where: { $or: [{ deviceNote: HIDDEN }] } })],
    ] as const) {
      expect([tool, isRefused(await callTool(service, tool, args, headers))]).toEqual([tool, true]);
    }
  });
});

describe('GHSA-8xq9-g7ch-35hg: a user whose id reads as the name of a role', () => {
  const POISONED = 'role:guests';
  const LATER = new Date('2099-01-01T00:00:00.000Z');

  beforeAll(async () => {
    const client = new MongoClient(database.uri);
    const db = client.db('parley');
    const ids = db.collection<{ _id: string }>('_User');
    await ids.insertMany([
      { _id: POISONED, username: 'poisoned' },
      { _id: 'legacy', username: 'legacy', _session_token: 'legacy-token' } as { _id: string },
    ] as { _id: string }[]);
    await db.collection<{ _id: string }>('_Session').insertOne({
      _id: 'poisonedSession',
      _session_token: `r:${HIDDEN}-poisoned`,
      _p_user: `_User$${POISONED}`,
      expiresAt: LATER,
    } as { _id: string });
    await db.collection<{ _id: string }>('Matter').insertOne({
      _id: 'forGuests',
      text: 'for guests',
      released: true,
      _rperm: ['role:guests'],
    } as { _id: string });
    await client.close();
  });

  const forGuests = { class_name: 'Matter', where: { text: 'for guests' } };

  it('the attack asks something: the role, and its members, read the row', async () => {
    for (const headers of [withKey('guests'), withSession('mallory')]) {
      const answer = await callTool(service, 'query_class', forGuests, headers);
      expect(answer.data['results']).toHaveLength(1);
    }
    const other = await callTool(service, 'query_class', forGuests, withSession('victim'));
    expect(other.data['results']).toEqual([]);
  });

  it.each<[string, Record<string, string>]>([
    ['its session', withSession('poisoned')],
    ['its session in client mode', { ...withKey('client'), ...withSession('poisoned') }],
    ['a token kept on the user’s own row', { 'X-Parse-Session-Token': 'legacy-token' }],
  ])('%s is that of nobody', async (_, headers) => {
    for (const [tool, args] of [
      ['query_class', forGuests],
      ['count_objects', forGuests],
      ['get_object', { class_name: 'Matter', object_id: 'forGuests' }],
    ] as const) {
      const answer = await rpc(service, 'tools/call', { name: tool, arguments: args }, headers);
      expect([tool, answer.status, answer.body.error?.code]).toEqual([tool, 401, -32001]);
    }
  });

  it('no agent can be set up to act as it', async () => {
    const { code, stderr } = await startAndFail({
      config: {
        agents: { fake: { identity: { user: POISONED } } },
        auth: [{ apiKey: 'k', agent: 'fake' }],
        policy: { unlistedClasses: 'allow' },
      },
    });
    expect(code).not.toBe(0);
    expect(stderr).toContain('agents.fake.identity.user');
  });

  it('no write chooses the id of a user', async () => {
    for (const fields of [
      { username: 'eve', objectId: POISONED },
      { username: 'eve', object_id: POISONED },
      { username: 'eve', _id: POISONED },
      { username: 'eve', id: POISONED },
    ]) {
      const answer = await callTool(
        service,
        'create_object',
        { class_name: '_User', fields },
        withKey('admin'),
      );
      expect([fields, isRefused(answer)]).toEqual([fields, true]);
    }
    const made = await callTool(
      service,
      'create_object',
      { class_name: 'Person', fields: { name: 'ordinary' } },
      withKey('admin'),
    );
    expect(made.isError).toBe(false);
  });
});
