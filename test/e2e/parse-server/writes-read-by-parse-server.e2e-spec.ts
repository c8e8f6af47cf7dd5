import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { decideApproval } from '../../support/decide-approval.js';
import { type ParseServerProcess, startParseServer } from '../../support/parse-server-process.js';
import {
  callTool,
  type Database,
  GATES_OPEN,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const SEED = {
  schemas: [
    { className: 'Author', fields: { name: { type: 'String' } } },
    {
      className: 'Note',
      fields: {
        text: { type: 'String' },
        count: { type: 'Number' },
        done: { type: 'Boolean' },
        due: { type: 'Date' },
        author: { type: 'Pointer', targetClass: 'Author' },
        tags: { type: 'Array' },
        extra: { type: 'Object' },
        place: { type: 'GeoPoint' },
        area: { type: 'Polygon' },
        raw: { type: 'Bytes' },
        cover: { type: 'File' },
      },
    },
  ],
  users: [{ objectId: 'ada', username: 'ada', password: 'ada-secret' }],
  objects: {
    Author: [{ objectId: 'ann', name: 'Ann' }],
    Note: [{ objectId: 'own', text: 'Private', ACL: { ada: { read: true, write: true } } }],
  },
};

const FIELDS = {
  text: 'Written by an agent',
  count: 4.5,
  done: false,
  due: { __type: 'Date', iso: '2026-03-04T05:06:07.089Z' },
  author: { __type: 'Pointer', className: 'Author', objectId: 'ann' },
  tags: ['a', { when: { __type: 'Date', iso: '2026-01-01T00:00:00.000Z' } }],
  extra: { nested: { list: [1, null, 'x'] } },
  place: { __type: 'GeoPoint', latitude: 48.2, longitude: 16.4 },
  area: {
    __type: 'Polygon',
    coordinates: [
      [0, 0],
      [0, 1],
      [1, 0],
      [0, 0],
    ],
  },
  raw: { __type: 'Bytes', base64: 'AQID' },
};

const AGENT = { permissions: 'admin', rateLimit: 1_000_000 };
const CHIEF = { 'X-MCP-API-Key': 'key-of-chief' };

let database: Database;
let service: Service;
let parse: ParseServerProcess;
beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({
    config: {
      database: { uri: database.uri, name: 'parley' },
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: { admin: AGENT, chief: AGENT, proposer: { ...AGENT, writes: 'proposed' } },
      auth: [
        { apiKey: 'key-of-proposer', agent: 'proposer' },
        { apiKey: 'key-of-chief', agent: 'chief' },
        { anonymous: true, agent: 'admin' },
      ],
      approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
      changes: { undo: 'agents' },
      policy: { unlistedClasses: 'allow' },
    },
    env: GATES_OPEN,
  });
  const uri = new URL(database.uri);
  uri.pathname = '/parley';
  parse = await startParseServer(uri.toString());
});
afterAll(async () => {
  await parse.close();
  await service.stop();
  await database.stop();
});

const written = async (tool: string, args: Record<string, unknown>) => {
  const answer = await callTool(service, tool, args);
  expect(answer).toMatchObject({ isError: false });
  return answer.data;
};
const read = async (path: string, who: { session?: string; master?: boolean } = { master: true }) =>
  (await parse.call('GET', path, who)).body;

const proposed = async (tool: string, args: Record<string, unknown>) => {
  const answer = await callTool(service, tool, args, { 'X-MCP-API-Key': 'key-of-proposer' });
  expect(answer).toMatchObject({ isError: false });
  return answer.data;
};
const approved = async (tool: string, args: Record<string, unknown>) => {
  const waiting = proposed(tool, args);
  const cases = `${service.origin}/approvals`;
  const id = await vi.waitUntil(
    async () => {
      const listed = (await (await fetch(cases, { headers: CHIEF })).json()) as {
        approvals: { id: string }[];
      };
      return listed.approvals[0]?.id;
    },
    { timeout: 20_000, interval: 50 },
  );
  await decideApproval(`${cases}/${String(id)}`, CHIEF, { decision: 'approve' });
  return waiting;
};

describe('Parse Server, over the same database', () => {
  it('reads what an agent created, type for type', async () => {
    const { object_id: id, created_at: at } = await written('create_object', {
      class_name: 'Note',
      fields: FIELDS,
    });
    expect(await read(`/classes/Note/${String(id)}`)).toEqual({
      ...FIELDS,
      objectId: id,
      createdAt: at,
      updatedAt: at,
    });
  });

  it('finds it by every constraint an application would use', async () => {
    await written('create_object', { class_name: 'Note', fields: { ...FIELDS, text: 'Findable' } });
    for (const where of [
      { text: 'Findable', author: FIELDS.author },
      { text: 'Findable', due: { $lt: { __type: 'Date', iso: '2027-01-01T00:00:00.000Z' } } },
      { text: 'Findable', place: { $nearSphere: FIELDS.place, $maxDistanceInKilometers: 1 } },
    ]) {
      const { body } = await parse.call('GET', '/classes/Note', { query: { where }, master: true });
      expect(body['results']).toHaveLength(1);
    }
  });

  it('reads what a change set did, and what was taken back as it was', async () => {
    const { object_id: gone } = await written('create_object', { class_name: 'Note', fields: FIELDS });
    const paths = ['own', String(gone)].map((id) => `/classes/Note/${id}`);
    const readAll = () => Promise.all(paths.map((path) => read(path)));
    const before = await readAll();
    const { object_id: made, change_set: set } = await proposed('create_object', {
      class_name: 'Note',
      fields: FIELDS,
    });
    await proposed('update_object', {
      class_name: 'Note',
      object_id: 'own',
      fields: { text: { __op: 'Delete' }, count: { __op: 'Increment', amount: 2 }, area: FIELDS.area },
    });
    await proposed('delete_object', { class_name: 'Note', object_id: gone });
    expect(await readAll()).toEqual(before);
    await approved('submit_changes', { title: 'a set', reason: 'it is needed' });
    expect(await read(`/classes/Note/${String(made)}`)).toMatchObject(FIELDS);
    const [own, lost] = await readAll();
    const { text: _text, ...others } = before[0] as Record<string, unknown>;
    expect(own).toEqual({ ...others, count: 2, area: FIELDS.area, updatedAt: own?.['updatedAt'] as string });
    expect(lost).toMatchObject({ code: 101 });
    await approved('undo_changes', { change_set: set });
    expect(await readAll()).toEqual(before);
    expect(await read(`/classes/Note/${String(made)}`)).toMatchObject({ code: 101 });
  });

  it('sees operations as it would have done them, and the row rights left alone', async () => {
    await written('update_object', {
      class_name: 'Note',
      object_id: 'own',
      fields: {
        text: { __op: 'Delete' },
        count: { __op: 'Increment', amount: 2 },
        tags: { __op: 'Add', objects: ['x', 'x'] },
        author: FIELDS.author,
      },
    });
    const row = await read('/classes/Note/own');
    expect(row).toMatchObject({
      count: 2,
      tags: ['x', 'x'],
      author: FIELDS.author,
      ACL: { ada: { read: true, write: true } },
    });
    expect(row).not.toHaveProperty('text');
    expect(await read('/classes/Note/own', {})).toMatchObject({ code: 101 });
    const { body } = await parse.call('GET', '/login', {
      query: { username: 'ada', password: 'ada-secret' },
    });
    const session = String(body['sessionToken']);
    expect(await read('/classes/Note/own', { session })).toMatchObject({ objectId: 'own', count: 2 });
  });

  it('goes on writing the row', async () => {
    const { object_id: id } = await written('create_object', { class_name: 'Note', fields: { count: 1 } });
    const body = { count: { __op: 'Increment', amount: 5 }, text: 'by Parse' };
    await parse.call('PUT', `/classes/Note/${String(id)}`, { body, master: true });
    const again = await written('update_object', {
      class_name: 'Note',
      object_id: id,
      fields: { count: { __op: 'Increment', amount: 1 } },
    });
    expect(again['object']).toMatchObject({ count: 7, text: 'by Parse' });
  });

  it('keeps a user that an agent made to that user', async () => {
    const { object_id: id } = await written('create_object', {
      class_name: '_User',
      fields: { username: 'eve' },
    });
    expect(await read(`/users/${String(id)}`, {})).toMatchObject({ code: 101 });
    expect(await read(`/users/${String(id)}`)).toMatchObject({ username: 'eve' });
  });

  it('knows a class that an agent made: typed, and closed to everyone without the master key', async () => {
    await written('create_class', {
      class_name: 'Ledger',
      fields: { amount: 'Number', note: { type: 'Pointer', targetClass: 'Note' } },
    });
    const { object_id: id } = await written('create_object', { class_name: 'Ledger', fields: { amount: 7 } });
    expect(await read('/schemas/Ledger')).toMatchObject({
      className: 'Ledger',
      fields: { amount: { type: 'Number' }, note: { type: 'Pointer', targetClass: 'Note' } },
    });
    expect(await read(`/classes/Ledger/${String(id)}`)).toMatchObject({ amount: 7 });
    expect(await read(`/classes/Ledger/${String(id)}`, {})).toMatchObject({ code: 119 });
    const wrong = await parse.call('POST', '/classes/Ledger', { body: { amount: 'seven' }, master: true });
    expect(wrong.body).toMatchObject({ code: 111 });
  });

  it('no longer finds what an agent removed', async () => {
    const { object_id: id } = await written('create_object', {
      class_name: 'Note',
      fields: { text: 'Brief' },
    });
    await written('delete_object', { class_name: 'Note', object_id: id });
    expect(await read(`/classes/Note/${String(id)}`)).toMatchObject({ code: 101 });
  });
});
