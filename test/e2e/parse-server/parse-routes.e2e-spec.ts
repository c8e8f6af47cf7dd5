import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { AS, TENANT_NOTES_SEED, TENANT_NOTES_CONFIG, SECRET } from '../../fixtures/tenant-notes.fixture.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import {
  callTool,
  GATES_OPEN,
  rpc,
  type Service,
  startAndFail,
  startService,
  type ToolAnswer,
} from '../../support/service.js';

const cloud = fileURLToPath(new URL('../../fixtures/cloud/triggers.cjs', import.meta.url));

/** The machine may be busy. */
const PATIENT = { timeout: 30_000, interval: 100 };

let parse: ParseUnderTest;
let service: Service;

beforeAll(async () => {
  parse = await ParseUnderTest.start({ cloud });
  await parse.fill(TENANT_NOTES_SEED);
  service = await startService({
    config: {
      ...TENANT_NOTES_CONFIG,
      parse: parse.config,
      database: { uri: parse.databaseUri, name: parse.databaseName },
    },
    env: GATES_OPEN,
  });
}, 120_000);

const call = (name: string, args: unknown, headers: Record<string, string>) =>
  callTool(service, name, args, headers);
const rowsOf = ({ data }: ToolAnswer) => (data['results'] ?? data['rows']) as Record<string, unknown>[];
const notes = (headers: Record<string, string>, more: object = {}) =>
  call('query_class', { class_name: 'Note', order: 'rank', ...more }, headers);
const titles = async (headers: Record<string, string>, more: object = {}) =>
  rowsOf(await notes(headers, more)).map((row) => row['title']);
const stored = async () => parse.database.collection('Note').find({}).sort({ _id: 1 }).toArray();
const traces = async () =>
  (await parse.database.collection('Trace').find({}).toArray()).map((row) => String(row['kind']));

describe('reading with a Parse Server', { timeout: 60_000 }, () => {
  it('goes through it for the master key, sessions and client mode, and past it for an assumed user', async () => {
    const nameFor = async (headers: Record<string, string>) =>
      rowsOf(await call('query_class', { class_name: 'Traced' }, headers))[0]?.['name'];
    expect(await nameFor(AS.operator)).toBe('seen by Parse Server');
    expect(await nameFor(AS.ada)).toBe('seen by Parse Server');
    expect(await nameFor(AS.clientAda)).toBe('seen by Parse Server');
    expect(await nameFor(AS.assumedAda)).toBe('as stored');
  });

  it('shows a caller the same rows and fields on either route', async () => {
    const viaServer = await notes(AS.ada, { include: ['shelf'] });
    const direct = await notes(AS.assumedAda, { include: ['shelf'] });
    expect(rowsOf(viaServer)).toEqual(rowsOf(direct));
    expect(rowsOf(viaServer).map((row) => row['title'])).toEqual(['counted', 'open', 'of ada', 'keep me']);
    expect(await titles(AS.clientAda)).toEqual(['counted', 'open', 'of ada', 'keep me']);
    expect(await titles(AS.bob)).toEqual(['counted', 'open', 'of bob', 'keep me']);
  });

  it('keeps tenant, filters, allowlist, hidden classes and includes on the way through it', async () => {
    for (const headers of [AS.operator, AS.ada, AS.clientAda]) {
      const answer = await notes(headers, { include: ['shelf'] });
      expect(answer.isError).toBe(false);
      expect(await titles(headers)).not.toContain('old');
      expect(rowsOf(answer).every((row) => !('orgId' in row) && !('inner' in row))).toBe(true);
      expect(answer.wire).toContain('North');
      if (headers !== AS.operator) expect(answer.wire).not.toContain(SECRET);
      else expect(rowsOf(answer).map((row) => row['title'])).not.toContain(SECRET);
      const vault = await call('query_class', { class_name: 'Vault' }, headers);
      expect(vault.code).toBe('access_denied');
      const through = { vault: { $inQuery: { className: 'Vault', where: { code: SECRET } } } };
      expect((await notes(headers, { where: through })).isError).toBe(true);
      expect((await notes(headers, { include: ['vault'] })).isError).toBe(true);
      const foreign = await call('get_object', { class_name: 'Note', object_id: 'foreign' }, headers);
      expect(foreign.details?.['kind']).toBe('tenant_scope');
      for (const [tool, args] of [
        ['get_object', (object_id: string) => ({ object_id })],
        ['get_objects', (id: string) => ({ ids: [id] })],
        ['update_object', (object_id: string) => ({ object_id, fields: { title: 'x' } })],
        ['delete_object', (object_id: string) => ({ object_id })],
      ] as const) {
        const [one, other] = await Promise.all(
          ['foreign', 'missing'].map((id) => call(tool, { class_name: 'Note', ...args(id) }, headers)),
        );
        expect([tool, other?.text.replaceAll('missing', 'foreign'), other?.code]).toEqual([
          tool,
          one?.text,
          one?.code,
        ]);
      }
    }
  });

  it('asks what a filter of the operator asks with the authority of the operator', async () => {
    for (const headers of [AS.operator, AS.ada, AS.clientAda, AS.assumedAda])
      expect(await titles(headers)).not.toContain('banned');
  });

  it('explains to the master key, and to sessions as far as Parse Server does', async () => {
    const plan = (headers: Record<string, string>) =>
      call('explain_query', { class_name: 'Note', where: { rank: 1 } }, headers);
    const explained = await plan(AS.operator);
    expect(explained.isError).toBe(false);
    expect(explained.wire).toContain('COLLSCAN');
    expect((await plan(AS.ada)).code).toBe('access_denied');
  });

  it('runs pipelines of sessions directly and those of client mode not at all', async () => {
    const pipeline = [{ $group: { _id: null, total: { $sum: '$rank' } } }];
    const of = (headers: Record<string, string>) =>
      call('aggregate', { class_name: 'Note', pipeline }, headers);
    const session = await of(AS.ada);
    expect(session.data).toMatchObject({ route: 'mongo_direct', results: [{ total: 9 }] });
    expect((await of(AS.assumedAda)).data).toMatchObject({ results: [{ total: 9 }] });
    expect((await of(AS.clientAda)).code).toBe('access_denied');
  });

  it('groups through it with the master key as directly with a session', async () => {
    const grouped = async (headers: Record<string, string>) =>
      (await call('group_by', { class_name: 'Note', field: 'shelf', operation: 'count' }, headers)).data;
    const { groups } = (await grouped(AS.operator)) as { groups: unknown[] };
    expect(groups.length).toBeGreaterThan(1);
    expect((await call('group_by', { class_name: 'Note', field: 'title' }, AS.ada)).isError).toBe(false);
  });

  it('knows nobody by a session of another application, of nobody, or that is more than a token', async () => {
    for (const token of ['r:of-another-application', 'x', `r:session-of-ada, r:b`, 'r:session-of-ada{}'])
      expect(
        (await rpc(service, 'tools/list', {}, { ...AS.ada, 'X-Parse-Session-Token': token })).status,
      ).toBe(401);
  });

  it('stops at once for a session that ended at Parse Server', async () => {
    expect((await notes(AS.leaving)).isError).toBe(false);
    await parse.server.call('POST', '/logout', { session: 'r:session-of-leaving' });
    const after = await rpc(
      service,
      'tools/call',
      { name: 'query_class', arguments: { class_name: 'Note' } },
      AS.leaving,
    );
    expect(after.text).not.toContain('of bob');
    await vi.waitFor(async () => {
      expect((await rpc(service, 'tools/list', {}, AS.leaving)).status).toBe(401);
    }, PATIENT);
  });

  it('refuses names that would lead to another address', async () => {
    for (const class_name of ['../users', 'Note/../_User', 'Note?where={}', 'classes%2F_User'])
      expect((await call('query_class', { class_name }, AS.operator)).code).toBe('invalid_argument');
    for (const object_id of ['../../users', 'a/b', '..', 'x?include=vault'])
      expect((await call('get_object', { class_name: 'Note', object_id }, AS.operator)).code).toBe(
        'invalid_argument',
      );
  });
});

describe('writing with a Parse Server', { timeout: 60_000 }, () => {
  beforeEach(() => parse.fill(TENANT_NOTES_SEED));

  it('runs its triggers on creation, change and deletion, as the user who writes', async () => {
    for (const [headers, by] of [
      [AS.operator, 'master'],
      [AS.ada, 'ada'],
      [AS.clientAda, 'ada'],
    ] as const) {
      await parse.fill(TENANT_NOTES_SEED);
      const created = await call(
        'create_object',
        { class_name: 'Note', fields: { title: 'new', rank: 9 } },
        headers,
      );
      expect(created).toMatchObject({ isError: false });
      const row = (await stored()).find((one) => one['title'] === 'new');
      expect(row).toMatchObject({ stampedBy: by, orgId: 'acme' });
      const target = { class_name: 'Note', object_id: String(row?._id) };
      const changed = await call('update_object', { ...target, fields: { rank: 10 } }, headers);
      expect(changed).toMatchObject({ isError: false });
      expect((await call('delete_object', target, headers)).isError).toBe(false);
      await vi.waitFor(
        async () => expect((await traces()).sort()).toEqual(['create', 'delete', 'update']),
        PATIENT,
      );
    }
  });

  const refused: [string, Record<string, string>, string, Record<string, unknown>][] = [
    ['a trigger refuses to save', AS.ada, 'create_object', { fields: { title: 'refuse me' } }],
    ['a trigger refuses to delete', AS.operator, 'delete_object', { object_id: 'keep' }],
    ['the row is somebody else’s', AS.ada, 'update_object', { object_id: 'bobs', fields: { rank: 1 } }],
    ['the row is of another tenant', AS.operator, 'delete_object', { object_id: 'foreign' }],
    ['the agent’s filter hides the row', AS.ada, 'update_object', { object_id: 'old', fields: { rank: 1 } }],
    ['the user is only assumed', AS.assumedAda, 'update_object', { object_id: 'adas', fields: { rank: 1 } }],
    ['it would name another method', AS.operator, 'create_object', { fields: { _method: 'DELETE' } }],
    ['it would name a session', AS.operator, 'create_object', { fields: { _SessionToken: 'r:x' } }],
    ['a value does not fit', AS.ada, 'update_object', { object_id: 'adas', fields: { rank: 'nine' } }],
  ];
  it.each(refused)('changes nothing when %s', async (_title, headers, tool, args) => {
    const before = await stored();
    const answer = await call(tool, { class_name: 'Note', ...args }, headers);
    expect(answer.isError || answer.rpcError !== undefined).toBe(true);
    expect(answer.wire).not.toContain('4711');
    expect(await stored()).toEqual(before);
    expect(await traces()).toEqual([]);
  });

  it.each([100, 101, 119, 124, 142, 209, 4711])(
    'says that code of the application refused a write, which threw the code %d',
    async (code) => {
      const fields = { title: `refuse me with ${code}` };
      for (const headers of [AS.ada, AS.operator]) {
        const answer = await call('create_object', { class_name: 'Note', fields }, headers);
        expect(answer).toMatchObject({ isError: true, code: 'parse_error' });
        expect(answer.text).toBe('Parse error: code of the application refused this');
      }
    },
  );

  it('loses none of many changes to one row at once', async () => {
    const target = { class_name: 'Note', object_id: 'count' };
    const raise = { rank: { __op: 'Increment', amount: 1 } };
    const changes = Array.from({ length: 12 }, (_, index) =>
      call('update_object', { ...target, fields: raise }, index % 2 === 0 ? AS.ada : AS.operator),
    );
    expect((await Promise.all(changes)).every((answer) => !answer.isError)).toBe(true);
    expect((await stored()).find((row) => row._id === 'count')).toMatchObject({ rank: 12 });
  });

  it('makes and removes classes where Parse Server knows of them', async () => {
    const made = await call(
      'create_class',
      { class_name: 'Review', fields: { stars: { type: 'Number' } } },
      AS.operator,
    );
    expect(made.isError).toBe(false);
    const known = await parse.server.call('GET', '/schemas/Review', { master: true });
    expect(known.body).toMatchObject({ fields: { stars: { type: 'Number' } } });
    expect((await call('delete_class', { class_name: 'Review' }, AS.operator)).isError).toBe(false);
  });
});

describe('a deployment with a Parse Server', { timeout: 120_000 }, () => {
  it('works without MongoDB, and says what needs it', async () => {
    await parse.fill(TENANT_NOTES_SEED);
    const lone = await startService({
      config: { ...TENANT_NOTES_CONFIG, parse: parse.config },
      env: GATES_OPEN,
    });
    try {
      const ask = (name: string, args: object, headers: Record<string, string>) =>
        callTool(lone, name, { class_name: 'Note', ...args }, headers);
      expect(rowsOf(await ask('query_class', {}, AS.ada))).toHaveLength(4);
      const pipeline = [{ $group: { _id: '$title', total: { $sum: '$rank' } } }, { $sort: { total: -1 } }];
      const master = await ask('aggregate', { pipeline }, AS.operator);
      expect(master.data).toMatchObject({ route: 'parse_server' });
      expect(rowsOf(master)[0]).toMatchObject({ _id: 'keep me', total: 6 });
      for (const headers of [AS.ada, AS.assumedAda]) {
        const refusal = await ask('aggregate', { pipeline }, headers);
        expect(refusal.code).toBe('access_denied');
        expect(refusal.text).toContain('direct access to MongoDB');
      }
      expect((await ask('query_class', {}, AS.assumedAda)).code).toBe('access_denied');
      const ready = await fetch(`${lone.origin}/ready`);
      expect(await ready.json()).toEqual({ status: 'ready', dependencies: { parse: 'up' } });
    } finally {
      await lone.stop();
    }
  });

  it('admits sessions alone where there is no master key', async () => {
    await parse.fill(TENANT_NOTES_SEED);
    const { agents } = TENANT_NOTES_CONFIG;
    const config = {
      agents: { session: agents.session },
      auth: [{ apiKey: 'key-session', agent: 'session' }],
      policy: TENANT_NOTES_CONFIG.policy,
      parse: { ...parse.config, masterKey: null },
      database: { uri: parse.databaseUri, name: parse.databaseName },
    };
    const lone = await startService({ config, env: GATES_OPEN });
    try {
      const listed = await rpc(lone, 'tools/list', {}, AS.ada);
      expect(listed.text).not.toContain('"aggregate"');
      expect(rowsOf(await callTool(lone, 'query_class', { class_name: 'Note' }, AS.ada))).toHaveLength(4);
    } finally {
      await lone.stop();
    }
    const master = await startAndFail({ config: { ...config, agents: { session: agents.asAda } } });
    expect(master.stderr).toContain('agents.session.identity');
  });

  it('says when Parse Server is down, and works again when it is back', async () => {
    await parse.fill(TENANT_NOTES_SEED);
    const restart = await parse.interrupt();
    const down = await notes(AS.operator);
    expect(down.code).toBe('parse_error');
    expect(down.text).toContain('Parse Server does not answer');
    const ready = async () => {
      const answer = await fetch(`${service.origin}/ready`);
      return { status: answer.status, body: (await answer.json()) as unknown };
    };
    expect(await ready()).toMatchObject({ status: 503, body: { dependencies: { parse: 'down' } } });
    await restart();
    await vi.waitFor(async () => expect((await ready()).status).toBe(200), PATIENT);
    expect((await notes(AS.operator)).isError).toBe(false);
  });

  it('writes neither keys nor tokens to its log', () => {
    const { stdout, stderr } = service.output();
    for (const secret of [parse.config.masterKey, parse.config.restApiKey, 'r:session-of', SECRET])
      expect(stdout + stderr).not.toContain(secret);
  });
});
