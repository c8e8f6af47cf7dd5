import { beforeAll, describe, expect, it } from 'vitest';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import {
  callTool,
  type Database,
  GATES_OPEN,
  type Service,
  startDatabase,
  startService,
  type ToolAnswer,
} from '../../support/service.js';

const HIDDEN = 'HIDDEN-from-this-caller';
const everyone = { '*': true };
const open = { find: everyone, get: everyone, count: everyone };
const user = (objectId: string) => ({ __type: 'Pointer', className: '_User', objectId });

const SEED = {
  schemas: [
    { className: 'Note', fields: { text: { type: 'String' }, count: { type: 'Number' } } },
    {
      className: 'Board',
      fields: { text: { type: 'String' } },
      classLevelPermissions: {
        ...open,
        create: { 'role:editors': true },
        update: { requiresAuthentication: true },
        delete: { ada: true },
        addField: {},
      },
    },
    {
      className: 'Owned',
      fields: { text: { type: 'String' }, owner: { type: 'Pointer', targetClass: '_User' } },
      classLevelPermissions: {
        ...open,
        create: everyone,
        update: { pointerFields: ['owner'] },
        delete: {},
        addField: everyone,
        writeUserFields: ['owner'],
      },
    },
    {
      className: 'Guarded',
      fields: { text: { type: 'String' }, salary: { type: 'String' } },
      classLevelPermissions: {
        ...open,
        create: everyone,
        update: everyone,
        delete: everyone,
        addField: everyone,
        protectedFields: { '*': ['salary'] },
      },
    },
  ],
  users: ['ada', 'bob'].map((name) => ({ objectId: name, username: name, password: 'x' })),
  roles: [{ name: 'editors', users: ['ada'], roles: [], ACL: {} }],
  sessions: ['ada', 'bob'].map((name) => ({
    sessionToken: `r:${name}`,
    user: name,
    expiresAt: '2099-01-01T00:00:00.000Z',
  })),
  objects: {
    Note: [
      { objectId: 'public', text: 'Public', count: 0 },
      { objectId: 'adas', text: HIDDEN, ACL: { ada: { read: true, write: true } } },
      { objectId: 'shown', text: 'Shown', ACL: { '*': { read: true }, ada: { write: true } } },
      { objectId: 'blind', text: HIDDEN, ACL: { bob: { write: true } } },
      { objectId: 'staff', text: 'Staff', ACL: { 'role:editors': { read: true, write: true } } },
      { objectId: 'locked', text: HIDDEN, ACL: {} },
    ],
    Board: [{ objectId: 'b1', text: 'Board' }],
    Owned: [{ objectId: 'o1', text: 'Of Ada', owner: user('ada') }],
    Guarded: [{ objectId: 'g1', text: 'Guarded', salary: HIDDEN }],
  },
};

const WHO = {
  ada: { 'X-MCP-API-Key': 'session', 'X-Parse-Session-Token': 'r:ada' },
  bob: { 'X-MCP-API-Key': 'session', 'X-Parse-Session-Token': 'r:bob' },
  asBob: { 'X-MCP-API-Key': 'asBob' },
  asEditor: { 'X-MCP-API-Key': 'asEditor' },
};
type Who = keyof typeof WHO;

let database: Database;
let view: DatabaseView;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(SEED);
  view = viewDatabase(database.uri);
  const admin = { permissions: 'admin', rateLimit: 1_000_000 };
  service = await startService({
    config: {
      database: { uri: database.uri, name: 'parley' },
      agents: {
        session: { ...admin, identity: { session: 'caller' } },
        asBob: { ...admin, identity: { user: 'bob' } },
        asEditor: { ...admin, identity: { role: 'editors' } },
      },
      auth: ['session', 'asBob', 'asEditor'].map((agent) => ({ apiKey: agent, agent })),
      policy: { unlistedClasses: 'allow' },
    },
    env: GATES_OPEN,
  });
});

const call = (who: Who, tool: string, args: Record<string, unknown>) =>
  callTool(service, tool, args, WHO[who]);
const update = (who: Who, className: string, id: string, fields: object = { text: 'Changed' }) =>
  call(who, 'update_object', { class_name: className, object_id: id, fields });
const remove = (who: Who, className: string, id: string) =>
  call(who, 'delete_object', { class_name: className, object_id: id });
const create = (who: Who, className: string, fields: object) =>
  call(who, 'create_object', { class_name: className, fields });

async function unchanged(work: () => Promise<ToolAnswer>): Promise<ToolAnswer> {
  const before = await view.dump();
  const answer = await work();
  expect(await view.dump()).toBe(before);
  expect(answer.wire).not.toContain(HIDDEN);
  return answer;
}

describe('the rights of a row', () => {
  it.each<[Who, string]>([
    ['bob', 'adas'],
    ['bob', 'shown'],
    ['bob', 'staff'],
    ['bob', 'locked'],
    ['ada', 'locked'],
    ['ada', 'blind'],
    ['asBob', 'adas'],
    ['asBob', 'shown'],
    ['asEditor', 'adas'],
    ['asEditor', 'shown'],
  ])('keep %s from changing or removing the row %s, as if it were not there', async (who, id) => {
    for (const work of [() => update(who, 'Note', id), () => remove(who, 'Note', id)]) {
      const answer = await unchanged(work);
      expect(answer).toMatchObject({
        code: 'parse_error',
        text: `Parse error: Object not found: Note#${id}`,
      });
    }
  });

  it.each<[Who, string]>([
    ['ada', 'adas'],
    ['ada', 'shown'],
    ['ada', 'staff'],
    ['asEditor', 'staff'],
    ['bob', 'public'],
    ['asBob', 'public'],
  ])('let %s change the row %s and see it', async (who, id) => {
    const answer = await update(who, 'Note', id, { text: `By ${who}` });
    expect(answer).toMatchObject({ isError: false, data: { object: { objectId: id, text: `By ${who}` } } });
  });

  it('show nothing of a row that may be written but not read', async () => {
    for (const who of ['bob', 'asBob'] as const) {
      const answer = await update(who, 'Note', 'blind', { count: 1 });
      expect(answer.isError).toBe(false);
      expect(Object.keys(answer.data['object'] as object).sort()).toEqual([
        'createdAt',
        'objectId',
        'updatedAt',
      ]);
      expect(answer.wire).not.toContain(HIDDEN);
    }
  });
});

describe('class-level permissions', () => {
  it('decide who creates, changes and removes', async () => {
    const denied = { code: 'access_denied', details: { kind: 'clp_denied' } };
    expect(await unchanged(() => create('bob', 'Board', { text: 'x' }))).toMatchObject(denied);
    expect(await unchanged(() => remove('bob', 'Board', 'b1'))).toMatchObject(denied);
    expect(await unchanged(() => remove('asEditor', 'Board', 'b1'))).toMatchObject(denied);
    expect(await unchanged(() => update('asEditor', 'Board', 'b1'))).toMatchObject(denied);
    for (const who of ['ada', 'asEditor'] as const)
      expect(await create(who, 'Board', { text: 'x' })).toMatchObject({ isError: false });
    expect(await update('bob', 'Board', 'b1')).toMatchObject({ isError: false });
    expect(await remove('ada', 'Board', 'b1')).toMatchObject({ isError: false });
  });

  it('decide who may add a column', async () => {
    const answer = await unchanged(() => create('ada', 'Board', { text: 'x', rating: 5 }));
    expect(answer).toMatchObject({ code: 'access_denied', details: { kind: 'clp_denied' } });
    expect(await create('bob', 'Owned', { text: 'x', rating: 5 })).toMatchObject({ isError: false });
  });

  it('limit changes to rows that name the caller', async () => {
    expect(await unchanged(() => update('bob', 'Owned', 'o1'))).toMatchObject({ code: 'parse_error' });
    expect(await unchanged(() => update('asEditor', 'Owned', 'o1'))).toMatchObject({
      details: { kind: 'clp_denied' },
    });
    expect(await update('ada', 'Owned', 'o1')).toMatchObject({ isError: false });
  });

  it('keep protected columns out of what a write answers', async () => {
    const answer = await update('bob', 'Guarded', 'g1', { text: 'Touched' });
    expect(answer).toMatchObject({ isError: false, data: { object: { text: 'Touched' } } });
    expect(answer.wire).not.toContain(HIDDEN);
    expect(answer.wire).not.toContain('salary');
  });
});

describe('classes', () => {
  it('are made and removed by nobody but the master key', async () => {
    for (const who of ['ada', 'asBob', 'asEditor'] as const)
      for (const work of [
        () => call(who, 'create_class', { class_name: 'Mine' }),
        () => call(who, 'delete_class', { class_name: 'Note' }),
      ])
        expect(await unchanged(work)).toMatchObject({
          code: 'access_denied',
          details: { kind: 'unenforceable_scope' },
        });
  });
});
