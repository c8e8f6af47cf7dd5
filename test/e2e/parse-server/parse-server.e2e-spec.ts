import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LiveQueryClient } from '../../support/live-query-client.js';
import { startParseServer, type ParseServerProcess } from '../../support/parse-server-process.js';

interface User {
  readonly id: string;
  readonly session: string;
}

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

let embedded: EmbeddedMongo | undefined;
let database: string;
let parse: ParseServerProcess;
let alice: User;
let bob: User;

/** Creates an object and gives its id. */
async function created(
  path: string,
  body: unknown,
  who: { session?: string; master?: boolean },
): Promise<string> {
  const answer = await parse.call('POST', path, { body, ...who });
  expect(answer).toMatchObject({ status: 201 });
  return String(answer.body['objectId']);
}

async function results(
  path: string,
  query: Record<string, unknown>,
  who: { session?: string; master?: boolean },
) {
  const answer = await parse.call('GET', path, { query, ...who });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body['results'] as Record<string, unknown>[];
}

async function signUp(username: string): Promise<User> {
  const body = { username, password: `${username}-secret`, email: `${username}@example.org` };
  const answer = await parse.call('POST', '/users', { body });
  return { id: String(answer.body['objectId']), session: String(answer.body['sessionToken']) };
}

beforeAll(async () => {
  // With MONGODB_URI the same rules are checked against a real MongoDB.
  const given = process.env['MONGODB_URI'];
  if (given === undefined) embedded = await EmbeddedMongo.start();
  const uri = new URL(given ?? embedded?.uri ?? '');
  uri.pathname = `/parse-e2e-${process.pid}`;
  database = uri.toString();
  parse = await startParseServer(database, { liveQueryClasses: ['Note'] });
  const schema = {
    className: 'Note',
    fields: {
      title: { type: 'String' },
      rank: { type: 'Number' },
      tags: { type: 'Array' },
      secret: { type: 'String' },
      author: { type: 'Pointer', targetClass: '_User' },
      readers: { type: 'Relation', targetClass: '_User' },
    },
    classLevelPermissions: {
      find: { '*': true },
      get: { '*': true },
      count: { '*': true },
      create: { requiresAuthentication: true },
      update: { '*': true },
      delete: { '*': true },
      addField: {},
      protectedFields: { '*': ['secret'] },
    },
    indexes: { rank_1: { rank: 1 } },
  };
  await parse.call('POST', '/schemas/Note', { body: schema, master: true });
  alice = await signUp('alice');
  bob = await signUp('bob');
});

afterAll(async () => {
  await parse?.close();
  if (!embedded) {
    const client = await MongoClient.connect(database);
    await client.db().dropDatabase();
    await client.close();
  }
  await embedded?.close();
});

describe('Parse Server on the database', () => {
  it('logs a user in by password and refuses a wrong one', async () => {
    const right = await parse.call('GET', '/login', {
      query: { username: 'alice', password: 'alice-secret' },
    });
    expect(right.body['sessionToken']).toBeTypeOf('string');
    const wrong = await parse.call('GET', '/login', { query: { username: 'alice', password: 'guess' } });
    expect(wrong.body['code']).toBe(101);
  });

  it('refuses a second user of the same name or address, also in other letters', async () => {
    const sameName = await parse.call('POST', '/users', { body: { username: 'ALICE', password: 'x' } });
    expect(sameName.body['code']).toBe(202);
    const sameAddress = await parse.call('POST', '/users', {
      body: { username: 'other', password: 'x', email: 'Alice@example.org' },
    });
    expect(sameAddress.body['code']).toBe(203);
  });

  it('refuses to create without a login where the class asks for one', async () => {
    const answer = await parse.call('POST', '/classes/Note', { body: { title: 'nobody' } });
    expect(answer.body['code']).toBe(101);
  });

  it('shows an object to its owner and to the members of a role, and hides it from others', async () => {
    await created(
      '/roles',
      {
        name: 'editors',
        ACL: { '*': { read: true } },
        users: { __op: 'AddRelation', objects: [pointer('_User', bob.id)] },
      },
      { master: true },
    );
    const acl = { [alice.id]: { read: true, write: true }, 'role:editors': { read: true } };
    const id = await created('/classes/Note', { title: 'private', ACL: acl }, alice);
    const seenBy = async (session?: string) =>
      (await parse.call('GET', `/classes/Note/${id}`, session === undefined ? {} : { session })).body;
    expect(await seenBy(alice.session)).toMatchObject({ title: 'private' });
    expect(await seenBy(bob.session)).toMatchObject({ title: 'private' });
    expect(await seenBy()).toMatchObject({ code: 101 });
    const change = await parse.call('PUT', `/classes/Note/${id}`, {
      body: { title: 'mine' },
      session: bob.session,
    });
    expect(change.body['code']).toBe(101);
  });

  it('never returns a protected field except to the master key', async () => {
    const id = await created('/classes/Note', { title: 'guarded', secret: 'xyz' }, alice);
    const shown = await parse.call('GET', `/classes/Note/${id}`, { session: alice.session });
    expect(shown.body).not.toHaveProperty('secret');
    const all = await parse.call('GET', `/classes/Note/${id}`, { master: true });
    expect(all.body).toMatchObject({ secret: 'xyz' });
  });

  it('finds by comparison, prefix, array, pointer and sub-query', async () => {
    for (const rank of [1, 2, 3, 4, 5, 6]) {
      const author = pointer('_User', rank % 2 === 0 ? bob.id : alice.id);
      const tags = rank > 3 ? ['late', `n${rank}`] : ['early'];
      await created('/classes/Note', { title: `find-${rank}`, rank, tags, author }, alice);
    }
    const titles = async (where: unknown, more = {}) =>
      (await results('/classes/Note', { where, order: 'rank', ...more }, alice)).map(({ title }) => title);
    expect(await titles({ rank: { $gt: 1, $lte: 3 } })).toEqual(['find-2', 'find-3']);
    expect(await titles({ title: { $regex: '^\\Qfind-5\\E' } })).toEqual(['find-5']);
    expect(await titles({ tags: { $all: ['late', 'n6'] } })).toEqual(['find-6']);
    expect(await titles({ author: pointer('_User', bob.id) }, { order: '-rank', limit: 2 })).toEqual([
      'find-6',
      'find-4',
    ]);
    const byAlice = { $inQuery: { className: '_User', where: { username: 'alice' } } };
    expect(await titles({ author: byAlice })).toEqual(['find-1', 'find-3', 'find-5']);
    expect(await titles({ $or: [{ rank: 1 }, { title: 'find-4' }] })).toEqual(['find-1', 'find-4']);
    const counted = await parse.call('GET', '/classes/Note', {
      query: { where: { rank: { $gte: 5 } }, count: 1, limit: 0 },
      session: alice.session,
    });
    expect(counted.body['count']).toBe(2);
    const [included] = await results('/classes/Note', { where: { rank: 2 }, include: 'author' }, alice);
    expect(included?.['author']).toMatchObject({ username: 'bob' });
  });

  it('changes counters and arrays in place', async () => {
    const id = await created('/classes/Note', { title: 'ops', rank: 1, tags: ['a', 'b'] }, alice);
    const { body } = await parse.call('PUT', `/classes/Note/${id}`, {
      body: { rank: { __op: 'Increment', amount: 4 }, tags: { __op: 'AddUnique', objects: ['b', 'c'] } },
      session: alice.session,
    });
    expect(body).toMatchObject({ rank: 5, tags: ['a', 'b', 'c'] });
  });

  it('keeps relations and finds through them in both directions', async () => {
    const id = await created('/classes/Note', { title: 'related' }, alice);
    const objects = [pointer('_User', alice.id), pointer('_User', bob.id)];
    const change = (op: unknown) =>
      parse.call('PUT', `/classes/Note/${id}`, { body: { readers: op }, session: alice.session });
    await change({ __op: 'AddRelation', objects });
    await change({ __op: 'RemoveRelation', objects: [pointer('_User', bob.id)] });
    const related = { $relatedTo: { object: pointer('Note', id), key: 'readers' } };
    const readers = await results('/users', { where: related }, alice);
    expect(readers.map(({ username }) => username)).toEqual(['alice']);
    const notes = await results('/classes/Note', { where: { readers: pointer('_User', alice.id) } }, alice);
    expect(notes.map(({ title }) => title)).toEqual(['related']);
  });

  it('does the requests of a batch one by one without a transaction', async () => {
    const requests = ['one', 'two'].map((title) => ({
      method: 'POST',
      path: '/parse/classes/Note',
      body: { title },
    }));
    const answer = await parse.call('POST', '/batch', { body: { requests }, session: alice.session });
    expect(answer.body).toMatchObject([{ success: {} }, { success: {} }]);
  });

  it('does all requests of a transaction, or none when one of them fails', async () => {
    const batch = (titles: string[], last: Record<string, unknown>) =>
      parse.call('POST', '/batch', {
        body: {
          transaction: true,
          requests: [...titles.map((title) => ({ title })), last].map((body) => ({
            method: 'POST',
            path: '/parse/classes/Note',
            body,
          })),
        },
        session: alice.session,
      });
    const count = async () =>
      (await results('/classes/Note', { where: { title: { $regex: '^tx' } } }, alice)).length;
    await batch(['tx-1', 'tx-2'], { title: 'tx-3', rank: 'no number' });
    expect(await count()).toBe(0);
    const done = await batch(['tx-4', 'tx-5', 'tx-6'], { title: 'tx-7' });
    expect(done.status).toBe(200);
    expect(await count()).toBe(4);
  });

  it('aggregates with the master key', async () => {
    const pipeline = [
      { $match: { title: { $regex: '^find-' } } },
      { $group: { _id: '$author', total: { $sum: '$rank' } } },
      { $sort: { total: -1 } },
    ];
    const rows = await results('/aggregate/Note', { pipeline }, { master: true });
    expect(rows.map(({ total }) => total)).toEqual([12, 9]);
  });

  it('reports entering, changing and leaving objects to a live query', async () => {
    const live = await LiveQueryClient.subscribe(
      parse,
      { className: 'Note', where: { rank: { $gt: 100 } } },
      alice.session,
    );
    const id = await created('/classes/Note', { title: 'live', rank: 150 }, alice);
    for (const rank of [160, 1, 200]) {
      await parse.call('PUT', `/classes/Note/${id}`, { body: { rank }, session: alice.session });
    }
    await parse.call('DELETE', `/classes/Note/${id}`, { session: alice.session });
    await live.until((events) => events.some(({ op }) => op === 'delete'));
    const seen = live.events.filter(({ object }) => object !== undefined);
    expect(seen.map(({ op, object }) => `${op} ${String(object?.['rank'])}`)).toEqual([
      'create 150',
      'update 160',
      'leave 1',
      'enter 200',
      'delete 200',
    ]);
    live.close();
  });
});
