import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, GATES_OPEN, type Service, startService } from '../../support/service.js';
import {
  ofPerson,
  SPELLED,
  type SpelledAgent,
  spelledConfig,
  value,
} from '../../fixtures/spelled-columns.fixture.js';

type Row = Record<string, unknown>;

interface Route {
  open(): Promise<Service>;
  close(): Promise<void>;
}

const overMongo: Route = {
  open: () => startService({ config: spelledConfig, seed: SPELLED, env: GATES_OPEN }),
  close: () => Promise.resolve(),
};

let parse: ParseUnderTest | undefined;
const overParseServer: Route = {
  open: async () => {
    parse = await ParseUnderTest.start();
    await parse.fill(SPELLED);
    return startService({
      config: {
        ...spelledConfig,
        parse: parse.config,
        database: { uri: parse.databaseUri, name: parse.databaseName },
      },
      env: GATES_OPEN,
    });
  },
  close: async () => {
    await parse?.stop();
  },
};

describe.each<[string, Route]>([
  ['MongoDB', overMongo],
  ['Parse Server', overParseServer],
])('columns of any spelling, over %s', { timeout: 60_000 }, (_, route) => {
  let service: Service;
  beforeAll(async () => {
    service = await route.open();
  }, 120_000);
  afterAll(async () => {
    await service?.stop();
    await route.close();
  });

  const call = (name: SpelledAgent, tool: string, args: object) =>
    callTool(service, tool, args, { 'X-MCP-API-Key': `key-${name}` });
  const found = async (name: SpelledAgent, className: string, args: object = {}): Promise<Row[]> => {
    const answer = await call(name, 'query_class', { class_name: className, order: 'objectId', ...args });
    expect([answer.code, answer.rpcError]).toEqual([undefined, undefined]);
    return answer.data['results'] as Row[];
  };
  const ids = (rows: readonly Row[]) => rows.map(({ objectId }) => objectId);

  describe('a query', () => {
    it.each(['SSN', 'ssn', 'sSN', 'social_no', 'socialNo', 'full_text', 'Title', 'line_2', 'line2'])(
      'finds by %s, shows it alone by keys, and sorts by it',
      async (name) => {
        expect(ids(await found('reader', 'Plain', { where: { [name]: value(name, 2) } }))).toEqual(['n2']);
        const keyed = await found('reader', 'Plain', { keys: [name] });
        expect(keyed.map((row) => row[name])).toEqual([1, 2, 3].map((index) => value(name, index)));
        expect(Object.keys(keyed[0] ?? {}).sort()).toEqual(
          [name, 'createdAt', 'objectId', 'updatedAt'].sort(),
        );
        expect(ids(await found('reader', 'Plain', { order: `-${name}` }))).toEqual(['n3', 'n2', 'n1']);
      },
    );

    it('takes a spelling whose column there is not for the lowerCamel form', async () => {
      expect(ids(await found('reader', 'Plain', { where: { Line2: value('line2', 1) } }))).toEqual(['n1']);
      expect(ids(await found('reader', 'Plain', { where: { SocialNo: value('socialNo', 1) } }))).toEqual([
        'n1',
      ]);
    });

    it('counts, groups, lists values, and groups by dates of the column that was named', async () => {
      const about = { class_name: 'Plain' };
      const count = await call('reader', 'count_objects', {
        ...about,
        where: { full_text: value('full_text', 1) },
      });
      expect(count.data['count']).toBe(1);
      for (const field of ['full_text', 'SSN', 'sSN', 'Title', 'line_2']) {
        const distinct = await call('reader', 'distinct', { ...about, field });
        expect([...(distinct.data['values'] as string[])].sort()).toEqual(
          [1, 2, 3].map((index) => value(field, index)),
        );
        const groups = await call('reader', 'group_by', { ...about, field });
        expect((groups.data['groups'] as { key: string }[]).map(({ key }) => key).sort()).toEqual(
          [1, 2, 3].map((index) => value(field, index)),
        );
      }
      for (const [field, years] of [
        ['created_on', ['2001', '2002', '2003']],
        ['createdOn', ['2031', '2032', '2033']],
      ] as const) {
        const dated = await call('reader', 'group_by_date', { ...about, field, interval: 'year' });
        const keys = (dated.data['groups'] as { key: string }[]).map(({ key }) => key.slice(0, 4));
        expect([field, keys.sort()]).toEqual([field, years]);
      }
      const max = await call('reader', 'group_by', {
        ...about,
        field: 'org_id',
        operation: 'max',
        value_field: 'line_2',
      });
      expect(max.text).toContain(value('line_2', 3));
      expect(max.text).not.toContain(value('line2', 3));
    });

    it('runs every stage of a pipeline on the column that was named', async () => {
      const rowsOf = async (pipeline: readonly object[]) => {
        const answer = await call('reader', 'aggregate', { class_name: 'Plain', pipeline });
        expect([JSON.stringify(pipeline), answer.code, answer.rpcError]).toEqual([
          JSON.stringify(pipeline),
          undefined,
          undefined,
        ]);
        return JSON.stringify(answer.data['results']);
      };
      for (const name of ['SSN', 'sSN', 'full_text', 'Title', 'line_2']) {
        const one = { $match: { [name]: value(name, 2) } };
        for (const pipeline of [
          [one, { $project: { [name]: 1 } }],
          [one, { $group: { _id: `$${name}` } }],
          [one, { $addFields: { copy: `$${name}` } }, { $project: { copy: 1 } }],
          [one, { $project: { x: { $getField: name } } }],
          [one, { $sortByCount: `$${name}` }],
          [{ $sort: { [name]: -1 } }, { $skip: 1 }, { $limit: 1 }, { $project: { [name]: 1 } }],
          [{ $match: { $expr: { $eq: [`$${name}`, value(name, 2)] } } }, { $project: { [name]: 1 } }],
          [one, { $facet: { all: [{ $project: { [name]: 1 } }] } }],
          [
            one,
            { $lookup: { from: 'Listed', localField: 'full_text', foreignField: 'full_text', as: 'same' } },
            { $project: { [name]: 1, n: { $size: '$same' } } },
          ],
        ]) {
          const answer = await rowsOf(pipeline);
          expect([JSON.stringify(pipeline), answer]).toEqual([
            JSON.stringify(pipeline),
            expect.stringContaining(value(name, 2)),
          ]);
        }
      }
      const joined = await rowsOf([
        { $match: { objectId: 'n1' } },
        { $lookup: { from: 'Listed', localField: 'full_text', foreignField: 'full_text', as: 'same' } },
      ]);
      expect(joined).toContain('l1');
      expect(joined).not.toContain('l2');
    });

    it('exports the columns that were named, and no cell of them is empty', async () => {
      const columns = ['SSN', 'sSN', 'full_text', 'Title', 'line_2', 'social_no'];
      for (const args of [
        { columns, order: 'objectId' },
        { columns, pipeline: [{ $sort: { objectId: 1 } }] },
      ]) {
        const answer = await call('reader', 'export_data', { class_name: 'Plain', format: 'csv', ...args });
        const lines = String(answer.data['output']).trim().split(/\r?\n/);
        expect(lines[0]).toBe(columns.join(','));
        expect(lines[1]).toBe(columns.map((name) => value(name, 1)).join(','));
      }
      const csv = await call('reader', 'query_class', {
        class_name: 'Plain',
        keys: ['full_text'],
        format: 'csv',
      });
      expect(csv.text).toContain(value('full_text', 1));
    });

    it('follows pointers and lists of them', async () => {
      const [first] = await found('reader', 'Post', {
        include: ['best_friend', 'all_friends'],
        where: { objectId: 'o1' },
      });
      expect(first?.['best_friend']).toMatchObject({ objectId: 'p2', full_text: ofPerson('full_text', 2) });
      expect(first?.['all_friends']).toMatchObject([{ objectId: 'p2', full_text: ofPerson('full_text', 2) }]);
      const asked = {
        best_friend: { $inQuery: { className: 'Person', where: { full_text: ofPerson('full_text', 2) } } },
      };
      expect(ids(await found('reader', 'Plain', { where: asked }))).toEqual(['n1']);
    });
  });

  describe('masks', () => {
    const SECRETS = [1, 2, 3].flatMap((index) => [
      ofPerson('SSN', index),
      ofPerson('social_no', index),
      ofPerson('Inner', index),
    ]);
    const shows = (wire: string) => SECRETS.filter((secret) => wire.includes(secret));

    it('hold for the column of that name and for no other, by every tool', async () => {
      const person = { class_name: 'Person' };
      const asked: readonly (readonly [string, object])[] = [
        ['query_class', person],
        ['query_class', { ...person, keys: ['SSN', 'social_no', 'Meta_Data', 'ssn'] }],
        ['query_class', { ...person, include: ['best_friend', 'all_friends'] }],
        ['query_class', { class_name: 'Plain', include: ['best_friend'] }],
        [
          'query_class',
          {
            class_name: 'Plain',
            keys: ['best_friend.SSN', 'best_friend.social_no', 'best_friend'],
            include: ['best_friend'],
          },
        ],
        ['query_class', { class_name: 'Post', include: ['best_friend.best_friend', 'all_friends'] }],
        ['get_object', { ...person, object_id: 'p1' }],
        ['get_object', { ...person, object_id: 'p1', include: ['best_friend'] }],
        ['get_objects', { ...person, ids: ['p1', 'p2'] }],
        ['get_objects', { ...person, object_ids: ['p1', 'p2'] }],
        ['get_sample_objects', person],
        ['export_data', person],
        ['export_data', { ...person, columns: ['SSN', 'social_no', 'ssn'] }],
        ['export_data', { ...person, pipeline: [{ $match: {} }] }],
        ['query_class', { ...person, format: 'csv' }],
        ['aggregate', { ...person, pipeline: [{ $match: {} }] }],
        ['aggregate', { ...person, pipeline: [{ $addFields: { all: '$$ROOT' } }] }],
        [
          'aggregate',
          { class_name: 'Plain', pipeline: [{ $lookup: { from: 'Person', pipeline: [], as: 'x' } }] },
        ],
        ['aggregate', { class_name: 'Plain', pipeline: [{ $unionWith: { coll: 'Person' } }] }],
      ];
      for (const [tool, args] of asked) {
        const { wire } = await call('reader', tool, args);
        expect([tool, JSON.stringify(args), shows(wire)]).toEqual([tool, JSON.stringify(args), []]);
      }
      const [row] = await found('reader', 'Person');
      expect(row).toMatchObject({
        ssn: ofPerson('ssn', 1),
        sSN: ofPerson('sSN', 1),
        social_no: '***',
        socialNo: ofPerson('socialNo', 1),
        Meta_Data: { Inner_Key: '***' },
      });
      expect(row).not.toHaveProperty('SSN');
    });

    it('let the columns be named by no query, and a refusal names what was written', async () => {
      const about = { class_name: 'Person' };
      for (const [tool, args] of [
        ['query_class', { where: { SSN: ofPerson('SSN', 1) } }],
        ['query_class', { order: 'SSN' }],
        ['count_objects', { where: { SSN: { $gt: '' } } }],
        ['distinct', { field: 'SSN' }],
        ['group_by', { field: 'SSN' }],
        ['aggregate', { pipeline: [{ $group: { _id: '$SSN' } }] }],
        ['aggregate', { pipeline: [{ $match: { SSN: ofPerson('SSN', 1) } }] }],
      ] as const) {
        const answer = await call('reader', tool, { ...about, ...args });
        expect([tool, args, answer.code]).toEqual([tool, args, 'access_denied']);
        expect(answer.text).toContain("'SSN'");
        expect(answer.text.split('Allowed:')[0]).not.toContain('sSN');
        expect(answer.text).not.toMatch(/Allowed:.*\bSSN\b/);
      }
      const open = await call('reader', 'count_objects', { ...about, where: { sSN: ofPerson('sSN', 1) } });
      expect(open.data['count']).toBe(1);
    });
  });

  describe('what limits rows', () => {
    it('holds as an agent filter, by every tool and inside joins', async () => {
      expect(ids(await found('filtered', 'Plain'))).toEqual(['n1', 'n3']);
      const plain = { class_name: 'Plain' };
      const people = [{ $lookup: { from: 'Person', pipeline: [], as: 'x' } }, { $project: { x: 1 } }];
      const asked: readonly (readonly [tool: string, args: object, trace: string])[] = [
        ['get_object', { ...plain, object_id: 'n2' }, value('Title', 2)],
        ['get_objects', { ...plain, ids: ['n1', 'n2'] }, value('Title', 2)],
        ['get_objects', { ...plain, object_ids: ['n1', 'n2'] }, value('Title', 2)],
        ['get_sample_objects', plain, value('Title', 2)],
        ['aggregate', { ...plain, pipeline: [{ $match: {} }] }, value('Title', 2)],
        ['export_data', plain, value('Title', 2)],
        ['distinct', { ...plain, field: 'org_id' }, 'globex'],
        ['group_by', { ...plain, field: 'org_id' }, 'globex'],
        [
          'query_class',
          { class_name: 'Post', include: ['best_friend', 'all_friends'] },
          ofPerson('Title', 2),
        ],
        ['aggregate', { class_name: 'Post', pipeline: people }, ofPerson('Title', 2)],
        [
          'aggregate',
          { class_name: 'Post', pipeline: [{ $limit: 1 }, { $unionWith: { coll: 'Person' } }] },
          ofPerson('Title', 2),
        ],
      ];
      for (const [tool, args, trace] of asked) {
        const { wire } = await call('filtered', tool, args);
        expect([tool, args, wire.includes(trace)]).toEqual([tool, args, false]);
      }
      const count = await call('filtered', 'count_objects', { class_name: 'Plain' });
      expect(count.data['count']).toBe(2);
    });

    it('holds as a default view', async () => {
      expect(ids(await found('reader', 'Post'))).toEqual(['o1', 'o2']);
      const count = await call('reader', 'count_objects', { class_name: 'Post' });
      expect(count.data['count']).toBe(2);
      const rows = await call('reader', 'aggregate', { class_name: 'Post', pipeline: [{ $match: {} }] });
      expect(rows.wire).not.toContain(value('Title', 3));
    });

    it('holds as a tenant, for reads and for writes', async () => {
      expect(ids(await found('acme', 'Deal'))).toEqual(['d1', 'd3']);
      const foreign = await call('acme', 'get_object', { class_name: 'Deal', object_id: 'd2' });
      expect(foreign.details?.['kind']).toBe('tenant_scope');
      const own = await call('acme', 'get_object', { class_name: 'Deal', object_id: 'd1' });
      expect(own.data['object']).toMatchObject({ objectId: 'd1', org_id: 'acme' });
      const conflict = await call('acme', 'query_class', { class_name: 'Deal', where: { org_id: 'globex' } });
      expect(conflict.details?.['kind']).toBe('tenant_scope');
      const unbound = await call('reader', 'query_class', { class_name: 'Deal' });
      expect(unbound.details?.['kind']).toBe('tenant_scope');
      const fields = { full_text: 'made here', SSN: 'made here, too' };
      const made = await call('acme', 'create_object', { class_name: 'Deal', fields });
      expect(made.data['object']).toMatchObject({ ...fields, org_id: 'acme' });
      const object_id = (made.data['object'] as Row)['objectId'];
      const changed = await call('acme', 'update_object', {
        class_name: 'Deal',
        object_id,
        fields: { Title: 'changed', line_2: 'two' },
      });
      expect(changed.data['object']).toMatchObject({ ...fields, Title: 'changed', line_2: 'two' });
      const stolen = await call('acme', 'update_object', {
        class_name: 'Deal',
        object_id,
        fields: { org_id: 'globex' },
      });
      expect(stolen.details?.['kind']).toBe('tenant_scope');
      await call('acme', 'delete_object', { class_name: 'Deal', object_id });
    });
  });

  describe('an allowlist', () => {
    it('shows the columns that it names, and no others', async () => {
      const [row] = await found('reader', 'Listed');
      expect(Object.keys(row ?? {}).sort()).toEqual(
        ['createdAt', 'created_on', 'full_text', 'objectId', 'ssn', 'updatedAt'].sort(),
      );
      const schema = await call('reader', 'get_schema', { class_name: 'Listed' });
      expect(schema.data['agent_fields']).toEqual(['full_text', 'created_on', 'ssn']);
      const [large] = (schema.data['fields'] as Row[]).filter(({ name }) => name === 'full_text');
      expect(large).toMatchObject({ large_field: true });
      for (const name of ['SSN', 'sSN', 'createdOn', 'fullText']) {
        const answer = await call('reader', 'query_class', { class_name: 'Listed', where: { [name]: 'x' } });
        expect([name, answer.details?.['kind']]).toEqual([name, 'field_denied']);
      }
    });
  });
});
