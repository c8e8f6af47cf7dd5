import { beforeAll, describe, expect, it } from 'vitest';
import {
  PATIENTS_SEED,
  PATIENTS_CONFIG,
  PRIVATE,
  withKey,
  withSession,
} from '../../fixtures/patients.fixture.js';
import { callTool, listLogged, rpc, type Service, startService } from '../../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ config: PATIENTS_CONFIG, seed: PATIENTS_SEED });
});

type Headers = Record<string, string>;
const call = (name: string, args: unknown, headers: Headers) => callTool(service, name, args, headers);
const idsOf = (rows: unknown, id = 'objectId') =>
  (rows as Record<string, unknown>[]).map((row) => String(row[id])).sort();

/** Who may read which charts, and on which of them the diagnosis. */
const CALLERS: readonly [string, Headers, string[], string[]][] = [
  ['the session of a doctor', withSession('ada'), ['bobs', 'public', 'staff'], ['bobs', 'public', 'staff']],
  ['the session of a patient', withSession('bob'), ['bobs', 'public'], ['bobs']],
  ['the session of a stranger', withSession('cy'), ['public'], []],
  [
    'a key with the session of a patient',
    { ...withKey('keyed'), ...withSession('bob') },
    ['bobs', 'public'],
    ['bobs'],
  ],
  ['an assumed doctor', withKey('actsAsAda'), ['bobs', 'public', 'staff'], ['bobs', 'public', 'staff']],
  ['an assumed patient', withKey('actsAsBob'), ['bobs', 'public'], ['bobs']],
  ['the role of doctors', withKey('doctors'), ['bobs', 'public', 'staff'], ['bobs', 'public', 'staff']],
  ['the role above it', withKey('staff'), ['public', 'staff'], []],
  [
    'the master key',
    withKey('operator'),
    ['bobs', 'nobodys', 'public', 'staff'],
    ['bobs', 'nobodys', 'public', 'staff'],
  ],
];

describe.each(CALLERS)('%s', (_, headers, visible, diagnosed) => {
  it('finds, samples and counts the rows it may read', async () => {
    const found = await call('query_class', { class_name: 'Chart' }, headers);
    expect(idsOf(found.data['results'])).toEqual(visible);
    const samples = await call('get_sample_objects', { class_name: 'Chart', limit: 20 }, headers);
    expect(idsOf(samples.data['results'] ?? samples.data['samples'])).toEqual(visible);
    const counted = await call('count_objects', { class_name: 'Chart' }, headers);
    expect(counted.data['count']).toBe(visible.length);
  });

  it('gets them by id, and nothing else', async () => {
    for (const objectId of ['public', 'staff', 'bobs', 'nobodys']) {
      const got = await call('get_object', { class_name: 'Chart', object_id: objectId }, headers);
      expect([objectId, got.isError]).toEqual([objectId, !visible.includes(objectId)]);
      if (got.isError) expect(got.code).toBe('parse_error');
    }
    const ids = ['public', 'staff', 'bobs', 'nobodys'];
    const many = await call('get_objects', { class_name: 'Chart', ids }, headers);
    expect(Object.keys(many.data['objects'] as object).sort()).toEqual(visible);
  });

  it('aggregates over them alone', async () => {
    const pipeline = [{ $group: { _id: '$objectId' } }];
    const grouped = await call('aggregate', { class_name: 'Chart', pipeline }, headers);
    expect(idsOf(grouped.data['results'], '_id')).toEqual(visible);
    const facet = [{ $facet: { all: [{ $count: 'n' }] } }];
    const branches = await call('aggregate', { class_name: 'Chart', pipeline: facet }, headers);
    expect(branches.data['results']).toMatchObject([{ all: [{ n: visible.length }] }]);
  });

  it('groups, lists and exports them alone', async () => {
    const grouped = await call('group_by', { class_name: 'Chart', field: 'title' }, headers);
    expect(grouped.data['groups']).toHaveLength(visible.length);
    const listed = await call('distinct', { class_name: 'Chart', field: 'title' }, headers);
    expect(listed.data['values']).toHaveLength(visible.length);
    const dated = { class_name: 'Chart', field: 'created_at', interval: 'year' };
    const perYear = await call('group_by_date', dated, headers);
    expect(perYear.data['groups']).toMatchObject([{ value: visible.length }]);
    const exported = await call(
      'export_data',
      { class_name: 'Chart', columns: ['title'], format: 'csv' },
      headers,
    );
    expect(String(exported.data['output']).trim().split('\n')).toHaveLength(1 + visible.length);
  });

  it('sees a protected field on the rows that are an exception', async () => {
    const found = await call('query_class', { class_name: 'Chart' }, headers);
    const rows = found.data['results'] as Record<string, unknown>[];
    expect(idsOf(rows.filter((row) => 'diagnosis' in row))).toEqual(diagnosed);
    for (const objectId of visible) {
      const got = await call('get_object', { class_name: 'Chart', object_id: objectId }, headers);
      const object = got.data['object'] as Record<string, unknown>;
      expect([objectId, 'diagnosis' in object]).toEqual([objectId, diagnosed.includes(objectId)]);
    }
  });

  it('joins, unites and follows graphs through rows it may read alone', async () => {
    const lookup = [
      { $match: { objectId: 'public' } },
      { $lookup: { from: 'Chart', let: {}, pipeline: [{ $project: { title: 1 } }], as: 'all' } },
    ];
    const joined = await call('aggregate', { class_name: 'Chart', pipeline: lookup }, headers);
    const [row] = joined.data['results'] as { all: unknown[] }[];
    expect(row?.all).toHaveLength(visible.length);
    const union = [{ $limit: 1 }, { $unionWith: 'Chart' }, { $count: 'n' }];
    const united = await call('aggregate', { class_name: 'Chart', pipeline: union }, headers);
    expect(united.data['results']).toEqual([{ n: 1 + visible.length }]);
    const graph = [
      { $match: { objectId: 'public' } },
      {
        $graphLookup: {
          from: 'Chart',
          startWith: 'Chart$public',
          connectFromField: 'parent',
          connectToField: 'parent',
          as: 'children',
        },
      },
    ];
    const followed = await call('aggregate', { class_name: 'Chart', pipeline: graph }, headers);
    const [start] = followed.data['results'] as { children: unknown[] }[];
    expect(start?.children).toHaveLength(visible.includes('staff') ? 1 : 0);
  });
});

it.each(CALLERS.filter(([who]) => who !== 'the master key'))(
  'never sends %s a word that is nobody’s to read',
  async (_, headers) => {
    for (const [tool, args] of [
      ['query_class', { class_name: 'Chart', include: ['ward', 'patient'] }],
      ['query_class', { class_name: '_User' }],
      ['query_class', { class_name: 'Diary' }],
      ['query_class', { class_name: 'Payroll' }],
      ['get_all_schemas', {}],
      ['get_schema', { class_name: 'Payroll' }],
      ['aggregate', { class_name: 'Chart', pipeline: [{ $match: { title: { $ne: 1 } } }] }],
    ] as const) {
      expect((await call(tool, args, headers)).wire).not.toContain(PRIVATE);
    }
  },
);

describe('a protected field', () => {
  const stranger = withSession('cy');
  const patient = withSession('bob');

  it.each<[string, string, Record<string, unknown>]>([
    ['a filter', 'query_class', { where: { diagnosis: 'flu' } }],
    ['a filter deep inside', 'count_objects', { where: { $or: [{ $and: [{ 'diagnosis.x': 1 }] }] } }],
    ['an order', 'query_class', { order: '-diagnosis' }],
    ['a pipeline filter', 'aggregate', { pipeline: [{ $match: { diagnosis: 'flu' } }] }],
    ['a group key', 'aggregate', { pipeline: [{ $group: { _id: '$diagnosis' } }] }],
    ['an expression', 'aggregate', { pipeline: [{ $project: { x: { $toUpper: '$diagnosis' } } }] }],
    ['a variable', 'aggregate', { pipeline: [{ $addFields: { x: '$$ROOT.diagnosis' } }] }],
    ['a sort', 'aggregate', { pipeline: [{ $sort: { diagnosis: 1 } }] }],
    [
      'a join',
      'aggregate',
      { pipeline: [{ $lookup: { from: 'Chart', localField: 'diagnosis', foreignField: 'title', as: 'x' } }] },
    ],
    [
      'a filter of a joined class',
      'aggregate',
      { pipeline: [{ $lookup: { from: 'Chart', pipeline: [{ $match: { diagnosis: 'flu' } }], as: 'x' } }] },
    ],
  ])('cannot be named in %s', async (_, tool, args) => {
    for (const headers of [stranger, patient, withKey('staff')]) {
      const answer = await call(tool, { class_name: 'Chart', ...args }, headers);
      expect(answer).toMatchObject({
        code: 'access_denied',
        details: { kind: 'protected_field_ref', denied_field: 'diagnosis' },
      });
    }
  });

  it('is in no whole document of a pipeline', async () => {
    const pipeline = [
      { $group: { _id: null, rows: { $push: '$$ROOT' } } },
      { $project: { rows: { $map: { input: '$rows', in: { $objectToArray: '$$this' } } } } },
    ];
    const answer = await call('aggregate', { class_name: 'Chart', pipeline }, patient);
    expect(answer.isError).toBe(false);
    expect(answer.wire).not.toMatch(/diagnosis|gout|flu/);
  });

  it('is left out of the keys that ask for it', async () => {
    const answer = await call('query_class', { class_name: 'Chart', keys: ['diagnosis', 'title'] }, patient);
    const rows = answer.data['results'] as Record<string, unknown>[];
    expect(idsOf(rows.filter((row) => 'diagnosis' in row))).toEqual(['bobs']);
    expect(rows.some((row) => 'patient' in row)).toBe(false);
  });

  it('is not shown by the schema', async () => {
    expect((await call('get_schema', { class_name: 'Chart' }, patient)).wire).not.toContain('diagnosis');
    expect((await call('get_schema', { class_name: 'Chart' }, withKey('doctors'))).wire).toContain(
      'diagnosis',
    );
  });

  it('keeps the addresses of other users, and shows a user its own', async () => {
    const users = await call('query_class', { class_name: 'User' }, patient);
    expect(users.wire).toContain('bob@clinic.example');
    expect(users.wire).not.toMatch(/(ada|cy)@clinic/);
    const guess = await call(
      'query_class',
      { class_name: 'User', where: { email: 'ada@clinic.example' } },
      patient,
    );
    expect(guess.details).toMatchObject({ kind: 'protected_field_ref' });
  });
});

describe('class-level permissions', () => {
  const denied = { code: 'access_denied', details: { kind: 'clp_denied' } };

  it.each<[string, Record<string, unknown>]>([
    ['query_class', {}],
    ['count_objects', {}],
    ['get_object', { object_id: 'pay' }],
    ['get_objects', { ids: ['pay'] }],
    ['get_sample_objects', {}],
    ['get_schema', {}],
    ['aggregate', { pipeline: [{ $limit: 1 }] }],
  ])('refuse %s on a closed class to all but the master key', async (tool, args) => {
    for (const headers of [withSession('ada'), withKey('actsAsAda'), withKey('doctors')])
      expect(await call(tool, { class_name: 'Payroll', ...args }, headers)).toMatchObject(denied);
    expect((await call(tool, { class_name: 'Payroll', ...args }, withKey('operator'))).isError).toBe(false);
  });

  it('are asked for each operation by its own name', async () => {
    const ward = { class_name: 'Ward' };
    expect(await call('query_class', ward, withSession('bob'))).toMatchObject(denied);
    const got = await call('get_object', { ...ward, object_id: 'w1' }, withSession('bob'));
    expect(got.data['object']).toMatchObject({ name: 'North' });
    expect(got.data['object']).not.toHaveProperty('budget');
    expect((await call('query_class', ward, withKey('staff'))).isError).toBe(false);
    expect(await call('get_object', { ...ward, object_id: 'w1' }, withKey('staff'))).toMatchObject(denied);
    expect(await call('count_objects', ward, withKey('staff'))).toMatchObject(denied);
  });

  it.each<[string, string, Record<string, unknown>]>([
    [
      'a join',
      'aggregate',
      { pipeline: [{ $lookup: { from: 'Ward', localField: 'ward', foreignField: 'objectId', as: 'w' } }] },
    ],
    ['a union', 'aggregate', { pipeline: [{ $unionWith: 'Ward' }] }],
    [
      'a union inside a facet',
      'aggregate',
      { pipeline: [{ $facet: { x: [{ $unionWith: { coll: 'Ward' } }] } }] },
    ],
    [
      'a question',
      'query_class',
      { where: { ward: { $inQuery: { className: 'Ward', where: { name: 'South' } } } } },
    ],
    [
      'the opposite question',
      'query_class',
      { where: { ward: { $notInQuery: { className: 'Ward', where: {} } } } },
    ],
    [
      'a selection',
      'query_class',
      { where: { title: { $select: { query: { className: 'Ward', where: {} }, key: 'name' } } } },
    ],
  ])('hold for a class reached by %s', async (_, tool, args) => {
    expect(await call(tool, { class_name: 'Chart', ...args }, withSession('bob'))).toMatchObject(denied);
    const permitted = await call(tool, { class_name: 'Chart', ...args }, withSession('ada'));
    expect(permitted.isError).toBe(false);
    expect(permitted.wire).not.toContain('budget');
  });

  it('do not hold against comparing a pointer', async () => {
    const where = { ward: { __type: 'Pointer', className: 'Ward', objectId: 'w1' } };
    const found = await call('query_class', { class_name: 'Chart', where }, withSession('bob'));
    expect(idsOf(found.data['results'])).toEqual(['public']);
  });

  it('leave an included row that may not be read a bare pointer', async () => {
    const found = await call('query_class', { class_name: 'Chart', include: ['ward'] }, withSession('bob'));
    const rows = new Map(
      (found.data['results'] as Record<string, unknown>[]).map((row) => [row['objectId'], row]),
    );
    expect(rows.get('public')?.['ward']).toMatchObject({ name: 'North' });
    expect(rows.get('bobs')?.['ward']).not.toHaveProperty('name');
    expect(found.wire).not.toMatch(/South|budget/);
  });

  it('limit a class of pointer permissions to the rows of the user, in every tool', async () => {
    const diary = { class_name: 'Diary' };
    for (const headers of [withSession('bob'), withKey('actsAsBob')]) {
      expect(idsOf((await call('query_class', diary, headers)).data['results'])).toEqual(['dBob']);
      expect((await call('count_objects', diary, headers)).data['count']).toBe(1);
      const pipeline = [{ $project: { text: 1 } }];
      expect((await call('aggregate', { ...diary, pipeline }, headers)).data['results']).toMatchObject([
        { text: 'of bob' },
      ]);
      expect((await call('get_object', { ...diary, object_id: 'dAda' }, headers)).code).toBe('parse_error');
    }
    expect(await call('query_class', diary, withKey('doctors'))).toMatchObject(denied);
  });

  it('lead a relation of a row that may not be read nowhere', async () => {
    const related = (objectId: string) => ({
      class_name: 'Chart',
      where: { $relatedTo: { object: { __type: 'Pointer', className: 'Ward', objectId }, key: 'charts' } },
    });
    const own = await call('query_class', related('w1'), withSession('bob'));
    expect(idsOf(own.data['results'])).toEqual(['bobs', 'public']);
    const foreign = await call('query_class', related('w2'), withSession('bob'));
    expect(foreign.data['results']).toEqual([]);
    expect(await call('query_class', related('w1'), withKey('staff'))).toMatchObject(denied);
  });

  it('decide what listings and suggestions name', async () => {
    const listed = await call('get_all_schemas', {}, withSession('cy'));
    expect(listed.wire).toContain('Chart');
    expect(listed.wire).toContain('Ward');
    expect(listed.wire).not.toContain('Payroll');
    expect((await call('get_all_schemas', {}, withKey('staff'))).wire).toContain('Ward');
    expect((await call('get_all_schemas', {}, withKey('operator'))).wire).toContain('Payroll');
    expect((await call('get_schema', { class_name: 'Payrol' }, withSession('cy'))).text).not.toContain(
      'Payroll',
    );
  });
});

describe('who a caller is', () => {
  it.each<[string, Headers]>([
    ['a session nobody signed in with', { 'X-Parse-Session-Token': 'r:ghost' }],
    ['a session that has expired', withSession('late')],
    ['no credential', {}],
    ['a key whose agent reads with a session, without one', withKey('keyed')],
    [
      'such a key with a session nobody signed in with',
      { ...withKey('keyed'), 'X-Parse-Session-Token': 'r:ghost' },
    ],
    ['a client-mode key without a session', withKey('client')],
  ])('is not known by %s', async (_, headers) => {
    const answer = await rpc(service, 'tools/call', { name: 'list_tools', arguments: {} }, headers);
    expect([answer.status, answer.body.error?.code]).toEqual([401, -32001]);
    expect(answer.text).not.toMatch(/session|expired|token/i);
  });

  it('is refused as a role that does not exist', async () => {
    const answer = await call('query_class', { class_name: 'Chart' }, withKey('ghosts'));
    expect(answer).toMatchObject({ code: 'access_denied', isError: true });
    expect(answer.text).not.toContain('ghosts');
  });

  it.each(['master', 'use_master_key', 'session_token', 'acl_user', 'acl_role'])(
    'is never taken from the argument %s',
    async (argument) => {
      const value =
        { session_token: `r:${PRIVATE}-ada`, acl_user: 'ada', acl_role: 'doctors' }[argument] ?? true;
      const answer = await call('query_class', { class_name: 'Chart', [argument]: value }, withSession('cy'));
      if (!answer.isError) expect(idsOf(answer.data['results'])).toEqual(['public']);
      expect(answer.wire).not.toContain('for staff');
    },
  );

  it('is held to the client-safe tools in client mode, and to its own rights', async () => {
    const headers = { ...withKey('client'), ...withSession('bob') };
    const listed = await rpc(service, 'tools/list', {}, headers);
    const names = (listed.body['result'] as { tools: { name: string }[] }).tools.map((tool) => tool.name);
    expect(names).toContain('query_class');
    expect(names).not.toContain('aggregate');
    expect(names).not.toContain('get_schema');
    const refused = await call('aggregate', { class_name: 'Chart', pipeline: [{ $limit: 1 }] }, headers);
    expect(refused.code).toBe('access_denied');
    const found = await call('query_class', { class_name: 'Chart' }, headers);
    expect(idsOf(found.data['results'])).toEqual(['bobs', 'public']);
  });

  it('is named with every call that no user signed in for, and no session token anywhere', async () => {
    await call('query_class', { class_name: 'Payroll' }, withSession('bob'));
    await call('query_class', { class_name: 'Payroll' }, withKey('actsAsBob'));
    await call('query_class', { class_name: 'Payroll' }, withKey('doctors'));
    const { stderr, stdout } = service.output();
    for (const rights of [' user=', ' role=doctors']) expect(stderr).toContain(rights);
    expect(stderr).toContain('denial_kind=clp_denied');
    expect(stderr + stdout).not.toContain(`r:${PRIVATE}`);
  });

  it('is the master key in no line of a lesser agent', async () => {
    await call('count_objects', { class_name: 'Chart' }, withKey('operator'));
    const masters = () =>
      listLogged(service, 'call').flatMap(({ agent, mode }) => (mode === 'master_key' ? [agent] : []));
    await expect.poll(masters).toContain('operator');
    expect(new Set(masters())).toEqual(new Set(['operator']));
    const logged = new Set(listLogged(service, 'call').map(({ agent }) => agent));
    expect([...logged]).toEqual(expect.arrayContaining(['actsAsBob', 'doctors', 'operator']));
  });

  it('is warned of at the start when it is the master key, and then only', () => {
    const warning = /agents with master posture \(([^)]*)\)/.exec(service.output().stderr);
    expect(warning?.[1]).toBe('operator');
  });
});
