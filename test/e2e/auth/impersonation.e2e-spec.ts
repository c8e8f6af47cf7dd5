import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  PATIENTS_SEED,
  PATIENTS_CONFIG,
  PRIVATE,
  withKey,
  withSession,
} from '../../fixtures/patients.fixture.js';
import {
  callTool,
  rpc,
  type Service,
  startAndFail,
  startService,
  listLogged,
} from '../../support/service.js';

const limits = { rateLimit: 1_000_000 };
const AGENTS = {
  asBob: { ...limits, identity: { impersonate: 'bob', label: '  support desk ' } },
  sessionless: { ...limits, identity: { impersonate: 'dan' } },
  minted: { ...limits, identity: { impersonate: 'eli', mint: true } },
  ghost: { ...limits, identity: { impersonate: 'nobody', mint: true } },
  labelled: { ...limits, identity: { role: 'doctors', label: 'night shift' } },
};

let service: Service;
beforeAll(async () => {
  const user = (objectId: string) => ({ objectId, username: objectId });
  service = await startService({
    seed: { ...PATIENTS_SEED, users: [...PATIENTS_SEED.users, user('dan'), user('eli')] },
    config: {
      // Whole records.
      logging: { format: 'plain', level: 'debug' },
      agents: { ...PATIENTS_CONFIG.agents, ...AGENTS },
      auth: [
        ...Object.keys(AGENTS).map((agent) => ({ apiKey: `key-${agent}`, agent })),
        ...PATIENTS_CONFIG.auth,
      ],
      policy: { unlistedClasses: 'allow' },
    },
  });
});

type Headers = Record<string, string>;
const READS: readonly (readonly [string, Record<string, unknown>])[] = [
  ['query_class', { class_name: 'Chart', order: 'title' }],
  ['query_class', { class_name: 'Chart', include: ['ward', 'patient'], order: 'title' }],
  ['query_class', { class_name: 'Diary' }],
  ['query_class', { class_name: 'Payroll' }],
  ['query_class', { class_name: 'Ward' }],
  ['query_class', { class_name: 'Chart', where: { diagnosis: 'gout' } }],
  ['count_objects', { class_name: 'Ward' }],
  ['get_object', { class_name: 'Chart', object_id: 'bobs' }],
  ['get_object', { class_name: 'Chart', object_id: 'nobodys' }],
  ['aggregate', { class_name: 'Chart', pipeline: [{ $group: { _id: '$title' } }, { $sort: { _id: 1 } }] }],
  ['get_all_schemas', {}],
];
/** What the service writes arrives a moment after its answer. */
const heard = (check: () => void) => vi.waitFor(check, { timeout: 20_000 });
const records = () => listLogged(service, 'call');

describe('an agent that is configured to act as a user', () => {
  it.each(READS)('is answered as a session of that user is: %s %j', async (tool, args) => {
    const own = await callTool(service, tool, args, withSession('bob'));
    const acting = await callTool(service, tool, args, withKey('asBob'));
    expect([acting.code, acting.text]).toEqual([own.code, own.text]);
  });

  it('is recorded with the user and the label', async () => {
    for (const agent of ['asBob', 'labelled'])
      await callTool(service, 'query_class', { class_name: 'Payroll' }, withKey(agent));
    const ofAgent = (name: string) => records().find((record) => record['agent_name'] === name);
    await heard(() => {
      expect(ofAgent('asBob')).toMatchObject({
        auth_type: 'session_token',
        using_master_key: false,
        impersonated_user_id: 'bob',
        impersonation_label: 'support desk',
      });
      expect(ofAgent('labelled')).toMatchObject({
        auth_type: 'acl_role',
        impersonation_label: 'night shift',
      });
      expect(ofAgent('labelled')).not.toHaveProperty('impersonated_user_id');
    });
    expect(JSON.stringify(service.output())).not.toContain(`r:${PRIVATE}`);
  });

  it.each(['sessionless', 'ghost'])('is let in by no one while there is no session: %s', async (agent) => {
    const answer = await rpc(service, 'tools/list', {}, withKey(agent));
    expect([answer.status, answer.body.error?.code]).toEqual([401, -32001]);
    expect(answer.text).not.toContain('session');
    const why = agent === 'ghost' ? /no user 'nobody'/ : /no active session of user 'dan'/;
    await heard(() => expect(service.output().stderr).toMatch(why));
  });

  it('acts by a session that was made for it, where that is ordered', async () => {
    const answer = await callTool(service, 'query_class', { class_name: 'Chart' }, withKey('minted'));
    expect((answer.data['results'] as { objectId: string }[]).map(({ objectId }) => objectId)).toEqual([
      'public',
    ]);
  });
});

describe('nothing of a request reaches an order to act as a user', () => {
  const attempts = {
    acl_user: 'ada',
    acl_role: 'doctors',
    session_token: `r:${PRIVATE}-ada`,
    master: true,
    use_master_key: true,
  };

  it.each<[string, Headers]>([
    ['an impersonating agent', withKey('asBob')],
    ['a session', withSession('bob')],
    ['an assumed user', withKey('actsAsBob')],
  ])('arguments change nothing for %s', async (_, headers) => {
    const args = { class_name: 'Chart', order: 'title' };
    const plain = await callTool(service, 'query_class', args, headers);
    const tried = await callTool(service, 'query_class', { ...args, ...attempts }, headers);
    expect(tried.text).toBe(plain.text);
  });

  it.each(['impersonate_user', 'impersonateUser', 'impersonate', 'impersonation_label'])(
    'an argument %s is refused as one that no tool has',
    async (name) => {
      const args = { class_name: 'Chart', [name]: 'ada' };
      const answer = await callTool(service, 'query_class', args, withKey('asBob'));
      expect(answer).toMatchObject({ isError: true, code: 'invalid_argument' });
      expect(answer.text).toContain(`'${name}'`);
    },
  );

  it('a session token beside the key changes nothing either', async () => {
    const args = { class_name: 'Chart', order: 'title' };
    const plain = await callTool(service, 'query_class', args, withKey('asBob'));
    const both = { ...withKey('asBob'), ...withSession('ada') };
    expect((await callTool(service, 'query_class', args, both)).text).toBe(plain.text);
  });

  it('headers and _meta named after it change nothing', async () => {
    const args = { class_name: 'Chart', order: 'title' };
    const plain = await rpc(
      service,
      'tools/call',
      { name: 'query_class', arguments: args },
      withKey('actsAsBob'),
    );
    const tried = await rpc(
      service,
      'tools/call',
      { name: 'query_class', arguments: args, _meta: attempts },
      { ...withKey('actsAsBob'), 'X-Parse-Impersonate-User': 'ada', 'X-Impersonate-User': 'ada' },
    );
    expect(tried.body['result']).toEqual(plain.body['result']);
  });
});

describe('a configuration', () => {
  const auth = [{ apiKey: 'k', agent: 'a' }];
  it.each<[string, object, RegExp]>([
    ['two identities', { identity: { user: 'u', role: 'r' } }, /mutually exclusive/],
    ['a client without a master key', { clientMode: true, identity: { impersonate: 'u' } }, /clientMode/],
    ['something that is no user', { identity: { impersonate: 'role:admins' } }, /identity\.impersonate/],
    [
      'a pointer',
      { identity: { impersonate: { className: '_User', objectId: 'u' } } },
      /identity\.impersonate/,
    ],
  ])('that orders to act as %s does not start', async (_, agent, message) => {
    const { code, stderr } = await startAndFail({
      config: { agents: { a: agent }, auth, policy: { unlistedClasses: 'allow' } },
    });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
  });
});

describe('under strictRole', () => {
  let strict: Service;
  beforeAll(async () => {
    strict = await startService({
      seed: PATIENTS_SEED,
      config: { ...PATIENTS_CONFIG, policy: { unlistedClasses: 'allow', strictRole: true } },
    });
  });
  afterAll(() => strict?.stop());

  const ids = async (className: string, agent: string) => {
    const answer = await callTool(
      strict,
      'query_class',
      { class_name: className, order: 'objectId' },
      withKey(agent),
    );
    return (answer.data['results'] as { objectId: string }[]).map(({ objectId }) => objectId);
  };

  it('a role reads rows without rights of their own and those that name it, not those that name everyone', async () => {
    expect(await ids('Chart', 'doctors')).toEqual(['bobs', 'public', 'staff']);
    expect(await ids('_User', 'doctors')).toEqual([]);
    expect(await ids('_User', 'actsAsAda')).toEqual(['ada', 'bob', 'cy']);
  });

  it('aggregates, counts and joins agree', async () => {
    const count = await callTool(strict, 'count_objects', { class_name: '_User' }, withKey('doctors'));
    expect(count.data['count']).toBe(0);
    const join = { from: '_User', let: {}, pipeline: [], as: 'users' };
    const joined = await callTool(
      strict,
      'aggregate',
      { class_name: 'Chart', pipeline: [{ $limit: 1 }, { $lookup: join }] },
      withKey('doctors'),
    );
    expect(joined.data['results']).toMatchObject([{ users: [] }]);
  });

  it('what is protected from everyone is protected from the role', async () => {
    const where = { diagnosis: 'flu' };
    const asked = await callTool(strict, 'query_class', { class_name: 'Chart', where }, withKey('staff'));
    expect(asked.details).toMatchObject({ kind: 'protected_field_ref' });
  });

  it('a class that is open to everyone is open to it', async () => {
    const found = await callTool(strict, 'query_class', { class_name: 'Chart' }, withKey('staff'));
    expect(found.isError).toBe(false);
  });
});

it('every run under the master key or as an assumed user or role leaves a line, a session none', async () => {
  await callTool(service, 'count_objects', { class_name: 'Chart' }, withKey('operator'));
  await callTool(service, 'count_objects', { class_name: 'Chart' }, withKey('doctors'));
  await callTool(service, 'count_objects', { class_name: 'Chart' }, withKey('actsAsBob'));
  for (const posture of [' mode=master_key', ' role=doctors', ' user=bob'])
    await heard(() => expect(service.output().stderr).toContain(posture));
  const before = service.output().stderr.length;
  await callTool(service, 'count_objects', { class_name: 'Chart' }, withSession('bob'));
  await callTool(service, 'count_objects', { class_name: 'Chart' }, withKey('asBob'));
  expect(service.output().stderr.slice(before)).not.toMatch(/ (mode|role|user)=/);
});
