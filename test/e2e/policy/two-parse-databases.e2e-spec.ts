import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  callTool,
  type Database,
  type Service,
  startAndFail,
  startDatabase,
  startService,
} from '../../support/service.js';

const text = { type: 'String' };
const everyone = { '*': true };
const open = {
  find: everyone,
  get: everyone,
  count: everyone,
  create: everyone,
  update: everyone,
  delete: everyone,
};
const SESSION = 'r:the-session-of-ann';
const FIRST = {
  schemas: [
    {
      className: 'Order',
      fields: { number: text, author: { type: 'Pointer', targetClass: 'Author' } },
      classLevelPermissions: open,
    },
    // The same class as in the second one, which is not the one that is declared.
    { className: 'Article', fields: { title: text }, classLevelPermissions: open },
  ],
  users: ['ann', 'ben'].map((name) => ({ objectId: name, username: name, password: 'x' })),
  roles: [{ name: 'editors', users: ['ann'] }],
  sessions: [{ sessionToken: SESSION, user: 'ann', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Order: [
      {
        objectId: 'o1',
        number: 'A1',
        author: { __type: 'Pointer', className: 'Author', objectId: 'w1' },
      },
    ],
    Article: [{ objectId: 'x1', title: 'WRONG-database' }],
  },
};
const readable = (...who: string[]) =>
  Object.fromEntries(who.map((one) => [one, { read: true, write: true }]));
const SECOND = {
  schemas: [
    { className: 'Author', fields: { name: text }, classLevelPermissions: open },
    {
      className: 'Article',
      fields: {
        title: text,
        fee: { type: 'Number' },
        owner: { type: 'Pointer', targetClass: '_User' },
        author: { type: 'Pointer', targetClass: 'Author' },
        readers: { type: 'Relation', targetClass: 'Author' },
      },
      classLevelPermissions: {
        ...open,
        delete: { 'role:editors': true },
        protectedFields: { '*': ['fee'], 'role:editors': [], 'userField:owner': [] },
      },
    },
    { className: 'Unlisted', fields: { title: text }, classLevelPermissions: open },
  ],
  // People of another application under the same ids, and a role of the same name: they have no rights here.
  users: [{ objectId: 'ben', username: 'other-ben', password: 'x' }],
  roles: [{ name: 'editors', users: ['ben'] }],
  sessions: [{ sessionToken: 'r:of-the-second', user: 'ben', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Author: [{ objectId: 'w1', name: 'Mo', ACL: readable('*') }],
    Article: [
      {
        objectId: 'a1',
        title: 'for all',
        fee: 71,
        author: { __type: 'Pointer', className: 'Author', objectId: 'w1' },
        readers: {
          __op: 'AddRelation',
          objects: [{ __type: 'Pointer', className: 'Author', objectId: 'w1' }],
        },
        ACL: readable('*'),
      },
      { objectId: 'a2', title: 'of Ann', fee: 72, ACL: readable('ann') },
      { objectId: 'a3', title: 'of Ben', fee: 73, ACL: readable('ben') },
      { objectId: 'a4', title: 'of editors', fee: 74, ACL: readable('role:editors') },
      { objectId: 'a5', title: 'of nobody', fee: 75, ACL: {} },
    ],
    Unlisted: [{ objectId: 'u1', title: 'not listed' }],
  },
};

let first: Database;
let second: Database;
let documents: MongoClient;
let service: Service;
const free = { permissions: 'admin', rateLimit: 1_000_000 };
const config = () => ({
  databases: {
    main: { uri: first.uri, name: 'parley' },
    press: { uri: second.uri, name: 'parley' },
  },
  agents: {
    desk: free,
    caller: { ...free, identity: { session: 'caller' } },
    ben: { ...free, identity: { user: 'ben' } },
  },
  auth: [
    { parseSession: true, agent: 'caller' },
    { apiKey: 'desk', agent: 'desk' },
    { apiKey: 'ben', agent: 'ben' },
  ],
  policy: {
    unlistedClasses: 'allow',
    classes: { Article: { database: 'press' }, Author: { database: 'press' } },
  },
});
const DESK = { 'X-MCP-API-Key': 'desk' };
const ANN = { 'X-Parse-Session-Token': SESSION };
const BEN = { 'X-MCP-API-Key': 'ben' };
const ask = (tool: string, args: object, headers: Record<string, string> = DESK) =>
  callTool(service, tool, args, headers);
const titles = async (headers: Record<string, string>) => {
  const { data } = await ask('query_class', { class_name: 'Article', order: 'objectId' }, headers);
  return (data['results'] as { objectId: string }[]).map(({ objectId }) => objectId);
};

beforeAll(async () => {
  [first, second] = await Promise.all([startDatabase(FIRST), startDatabase(SECOND)]);
  documents = new MongoClient(second.uri);
  service = await startService({
    config: config(),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await Promise.all([first?.stop(), second?.stop()]);
});

describe('two databases that Parse stores', () => {
  it('have their classes, of which each is read from its own', async () => {
    expect(await titles(DESK)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
    const orders = await ask('query_class', { class_name: 'Order' });
    expect(orders.data['results']).toMatchObject([{ number: 'A1' }]);
    const listed = await ask('get_all_schemas', {});
    expect(listed.wire).toContain('Author');
    // Classes of a further database exist where they are listed.
    expect(listed.wire).not.toContain('Unlisted');
    expect((await ask('query_class', { class_name: 'Unlisted' })).isError).toBe(true);
  });

  it('have the users, roles and sessions of the first one, whose rights hold in the second', async () => {
    expect(await titles(ANN)).toEqual(['a1', 'a2', 'a4']);
    expect(await titles(BEN)).toEqual(['a1', 'a3']);
    const stranger = await ask(
      'query_class',
      { class_name: 'Article' },
      {
        'X-Parse-Session-Token': 'r:of-the-second',
      },
    );
    expect(stranger.wire).not.toContain('of Ben');
    expect(stranger.wire).toContain('"error"');
    const users = await ask('query_class', { class_name: '_User' });
    expect(users.wire).not.toContain('other-ben');
  });

  it('keep protected columns and permissions of a class in the second', async () => {
    const [ann, ben] = [
      await ask('get_object', { class_name: 'Article', object_id: 'a1' }, ANN),
      await ask('get_object', { class_name: 'Article', object_id: 'a1' }, BEN),
    ];
    expect([ann.wire.includes('71'), ben.wire.includes('71')]).toEqual([true, false]);
    const removed = await ask('delete_object', { class_name: 'Article', object_id: 'a3' }, BEN);
    expect([removed.isError, removed.code]).toEqual([true, 'access_denied']);
  });

  it('are written where they are stored, as Parse stores it', async () => {
    const made = await ask(
      'create_object',
      {
        class_name: 'Article',
        fields: { title: 'made', author: { __type: 'Pointer', className: 'Author', objectId: 'w1' } },
      },
      ANN,
    );
    expect([made.isError, made.text]).toEqual([false, expect.any(String)]);
    const articles = documents.db('parley').collection('Article');
    const stored = await articles.findOne({ title: 'made' });
    expect(stored).toMatchObject({ _p_author: 'Author$w1', _id: expect.any(String) as unknown });
    await ask('update_object', {
      class_name: 'Article',
      object_id: String(stored?._id),
      fields: { title: 'changed' },
    });
    expect(await articles.countDocuments({ title: 'changed' })).toBe(1);
    await ask('delete_object', { class_name: 'Article', object_id: String(stored?._id) });
    expect(await articles.countDocuments({})).toBe(5);
  });

  it('are joined within one, followed by include over both, and refused a join over both', async () => {
    const joined = await ask('aggregate', {
      class_name: 'Article',
      pipeline: [
        { $match: { objectId: 'a1' } },
        { $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'by' } },
      ],
    });
    expect(joined.wire).toContain('Mo');
    const included = await ask('query_class', { class_name: 'Order', include: ['author'] }, ANN);
    expect(included.data['results']).toMatchObject([{ author: { name: 'Mo' } }]);
    const related = await ask('query_class', {
      class_name: 'Author',
      where: {
        $relatedTo: {
          object: { __type: 'Pointer', className: 'Article', objectId: 'a1' },
          key: 'readers',
        },
      },
    });
    expect(related.data['results']).toMatchObject([{ name: 'Mo' }]);
    const refused = await ask('aggregate', {
      class_name: 'Order',
      pipeline: [{ $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'by' } }],
    });
    expect([refused.code, refused.details]).toEqual(['invalid_query', { kind: 'cross_database' }]);
  });

  it('do not start where classes of users would be of the second', async () => {
    const { policy, ...others } = config();
    const classes = { ...policy.classes, _Role: { database: 'press' } };
    const { code, stderr } = await startAndFail({ config: { ...others, policy: { ...policy, classes } } });
    expect([code, stderr]).toEqual([1, expect.stringContaining('policy.classes._Role.database')]);
  });
});
