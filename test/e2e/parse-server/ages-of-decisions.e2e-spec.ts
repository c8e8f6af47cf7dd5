import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AUDIENCE, makeKey, type SmallIssuer, startIssuer } from '#auth/contracts';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, rpc, type ToolAnswer } from '../../support/service.js';
import { type ShiftedReplica, startShifted } from '../../support/shifted-replica.js';

const OPEN = { find: { '*': true }, get: { '*': true }, count: { '*': true }, protectedFields: { '*': [] } };
const SEED = {
  schemas: [
    {
      className: 'Card',
      fields: { title: { type: 'String' }, ssn: { type: 'String' } },
      classLevelPermissions: OPEN,
    },
  ],
  users: [{ objectId: 'ada', username: 'ada' }],
  roles: [{ objectId: 'staffrole', name: 'staff', users: ['ada'], ACL: {} }],
  sessions: [{ sessionToken: 'r:ada-session', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: {
    Card: [
      { objectId: 'open', title: 'open', ssn: '123-45' },
      { objectId: 'staff', title: 'of staff', ssn: '678-90', ACL: { 'role:staff': { read: true } } },
    ],
  },
};

/** Milliseconds without a call: past the age of everything that is remembered of Parse, and far from five minutes. */
const PAUSE = 75_000;

let parse: ParseUnderTest;
let service: ShiftedReplica;
let issuer: SmallIssuer;
let active: boolean;
beforeAll(async () => {
  [parse, issuer] = await Promise.all([ParseUnderTest.start(), startIssuer()]);
  issuer.instead.set('/introspect', (_request, response) => response.end(JSON.stringify({ active })));
  await parse.fill(SEED);
  service = await startShifted(0, {
    config: {
      agents: {
        assumed: { identity: { user: 'ada' }, rateLimit: 1_000_000 },
        caller: { identity: { session: 'caller' }, rateLimit: 1_000_000 },
        acting: { identity: { impersonate: 'ada' }, rateLimit: 1_000_000 },
        person: { identity: { claim: 'sub', field: 'username' }, rateLimit: 1_000_000 },
        reader: { rateLimit: 1_000_000 },
      },
      auth: [
        { apiKey: 'key-of-assumed-0000', agent: 'assumed' },
        { apiKey: 'key-of-acting-0000', agent: 'acting' },
        { apiKey: 'key-of-reader-0000', agent: 'reader' },
        {
          agent: 'person',
          oauth: {
            issuer: issuer.issuer,
            audience: AUDIENCE,
            introspection: { clientId: 'parley', clientSecret: 'its-own-secret' },
          },
        },
        { parseSession: true, agent: 'caller' },
      ],
      policy: { unlistedClasses: 'allow' },
      parse: parse.config,
      database: { uri: parse.databaseUri, name: parse.databaseName },
    },
  });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await Promise.all([parse?.stop(), issuer?.close()]);
});
// Each begins with what the service read long ago.
beforeEach(async () => {
  await parse.fill(SEED);
  await service.pass(3_600_000);
  active = true;
  issuer.keys = [issuer.key.jwk];
});

const ADA = { 'X-MCP-API-Key': 'key-of-assumed-0000' };
const READER = { 'X-MCP-API-Key': 'key-of-reader-0000' };
const SESSION = { 'X-Parse-Session-Token': 'r:ada-session' };

const cards = (headers: Record<string, string>, more: object = {}): Promise<ToolAnswer> =>
  callTool(service, 'query_class', { class_name: 'Card', order: 'title', ...more }, headers);
const rowsOf = ({ data }: ToolAnswer) => data['results'] as Record<string, unknown>[];
const titles = async (headers: Record<string, string>) =>
  rowsOf(await cards(headers)).map((row) => row['title']);
const permit = async (classLevelPermissions: object) => {
  const body = { className: 'Card', classLevelPermissions };
  const { status } = await parse.server.call('PUT', '/schemas/Card', { master: true, body });
  expect(status).toBe(200);
};

describe('the first call after a pause', { timeout: 60_000 }, () => {
  it('shows no column that was protected in the pause', async () => {
    expect(rowsOf(await cards(ADA))[0]).toHaveProperty('ssn', '678-90');
    await permit({ ...OPEN, protectedFields: { '*': ['ssn'] } });
    await service.pass(PAUSE);
    const { wire } = await cards(ADA);
    expect(wire).toContain('of staff');
    expect(wire).not.toContain('678-90');
    expect(wire).not.toContain('123-45');
  });

  it('compares and counts no column that was protected in the pause', async () => {
    const groups = () => callTool(service, 'group_by', { class_name: 'Card', field: 'ssn' }, ADA);
    expect((await groups()).wire).toContain('678-90');
    await permit({ ...OPEN, protectedFields: { '*': ['ssn'] } });
    await service.pass(PAUSE);
    expect(await groups()).toMatchObject({ isError: true, code: 'access_denied' });
  });

  it('reads no class that was closed in the pause', async () => {
    expect(await titles(ADA)).toEqual(['of staff', 'open']);
    await permit({ ...OPEN, find: {} });
    await service.pass(PAUSE);
    expect(await cards(ADA)).toMatchObject({ isError: true, code: 'access_denied' });
  });

  it('shows no row to a member of a role that left it in the pause', async () => {
    expect(await titles(ADA)).toEqual(['of staff', 'open']);
    await parse.database.collection('_Join:users:_Role').deleteMany({});
    await service.pass(PAUSE);
    expect(await titles(ADA)).toEqual(['open']);
  });

  it('admits no session that was revoked in the pause, whatever is called', async () => {
    const methods = ['tools/list', 'resources/list', 'prompts/list'];
    const statuses = () =>
      Promise.all(methods.map(async (method) => (await rpc(service, method, {}, SESSION)).status));
    expect(await statuses()).toEqual([200, 200, 200]);
    await parse.database.collection('_Session').deleteMany({});
    await service.pass(PAUSE);
    expect(await statuses()).toEqual([401, 401, 401]);
  });
});

describe(
  'the first call after a pause, of a caller whose rights come from elsewhere',
  { timeout: 60_000 },
  () => {
    const statusOf = async (headers: Record<string, string>) =>
      (await rpc(service, 'tools/list', {}, headers)).status;
    const bearer = async () => ({
      Authorization: `Bearer ${await issuer.token({ exp: Math.floor(Date.now() / 1000) + 30 * 86_400 })}`,
    });

    it('admits no token whose user was renamed in the pause', async () => {
      const person = await bearer();
      expect(await statusOf(person)).toBe(200);
      await parse.database.collection('_User').updateOne({}, { $set: { username: 'eve' } });
      await service.pass(PAUSE);
      expect(await statusOf(person)).toBe(401);
    });

    it('admits no token whose signing key the issuer took back in the pause', async () => {
      const person = await bearer();
      expect(await statusOf(person)).toBe(200);
      issuer.keys = [(await makeKey('ES256', 'second')).jwk];
      await service.pass(600_000);
      expect(await statusOf(person)).toBe(401);
    });

    it('admits no token that the issuer calls inactive since the pause', async () => {
      const person = await bearer();
      expect(await statusOf(person)).toBe(200);
      active = false;
      await service.pass(5_000);
      expect(await statusOf(person)).toBe(401);
    });

    it('acts with no session of a user that was revoked in the pause', async () => {
      const acting = { 'X-MCP-API-Key': 'key-of-acting-0000' };
      expect(await statusOf(acting)).toBe(200);
      await parse.database.collection('_Session').deleteMany({});
      await service.pass(PAUSE);
      expect(await statusOf(acting)).toBe(401);
    });
  },
);

describe('a machine whose clock is set', { timeout: 60_000 }, () => {
  it('forward, as after a suspension, reads again what is old by that clock', async () => {
    await cards(ADA);
    await permit({ ...OPEN, protectedFields: { '*': ['ssn'] } });
    await service.setClock(PAUSE);
    expect((await cards(ADA)).wire).not.toContain('678-90');
    await service.setClock(0);
  });

  it('back, makes nothing that was read younger', async () => {
    await cards(ADA);
    await permit({ ...OPEN, protectedFields: { '*': ['ssn'] } });
    await service.setClock(-3_600_000);
    await service.pass(PAUSE);
    expect((await cards(ADA)).wire).not.toContain('678-90');
    await service.setClock(0);
  });
});

describe('a name that is younger than what was read', { timeout: 60_000 }, () => {
  /** More than a second apart: invented names cause no more reads than that. */
  beforeEach(async () => {
    await cards(READER);
    await service.pass(2_000);
  });

  it('of a column is found at the first question', async () => {
    const row = { body: { colour: 'red', title: 'new' }, master: true };
    expect((await parse.server.call('POST', '/classes/Card', row)).status).toBe(201);
    const found = await cards(READER, { where: { colour: 'red' }, keys: ['title', 'colour'] });
    expect(rowsOf(found)).toMatchObject([{ title: 'new', colour: 'red' }]);
  });

  it('of a column of dates is compared as one at the first question', async () => {
    const due = { __type: 'Date', iso: '2026-03-01T00:00:00.000Z' };
    const row = { body: { due, title: 'dated' }, master: true };
    expect((await parse.server.call('POST', '/classes/Card', row)).status).toBe(201);
    const where = { due: { $gt: '2026-02-01T00:00:00.000Z' } };
    expect(rowsOf(await cards(READER, { where })).map(({ title }) => title)).toEqual(['dated']);
  });

  it.each<[string, string, object]>([
    ['read', 'query_class', {}],
    ['counted', 'count_objects', {}],
    ['described', 'get_schema', {}],
    ['grouped', 'group_by', { field: 'title' }],
  ])('of a class is %s at the first question', async (_, tool, args) => {
    const row = { body: { title: 'first' }, master: true };
    expect((await parse.server.call('POST', '/classes/Brandnew', row)).status).toBe(201);
    expect(await callTool(service, tool, { class_name: 'Brandnew', ...args }, READER)).toMatchObject({
      isError: false,
    });
  });

  it('of a pointer is grouped by what it points to at the first question', async () => {
    const owner = { __type: 'Pointer', className: '_User', objectId: 'ada' };
    const row = { body: { owner, title: 'owned' }, master: true };
    expect((await parse.server.call('POST', '/classes/Card', row)).status).toBe(201);
    const { wire } = await callTool(service, 'group_by', { class_name: 'Card', field: 'owner' }, READER);
    expect(wire).toContain('ada');
  });
});
