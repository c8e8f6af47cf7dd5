import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService } from '../../support/service.js';

const FANS = 2_500;
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const fan = (index: number) => `fan${index}`;
const related = (objects: readonly object[]) => ({ __op: 'AddRelation', objects });
const everyFan = Array.from({ length: FANS }, (_, index) => pointer('Fan', fan(index)));

/** An album with more fans than one page of Parse Server holds, and one whose fans are withheld. */
const SEED = {
  schemas: [
    {
      className: 'Album',
      fields: {
        title: { type: 'String' },
        fans: { type: 'Relation', targetClass: 'Fan' },
        critics: { type: 'Relation', targetClass: 'Critic' },
      },
    },
    { className: 'Fan', fields: { rank: { type: 'Number' }, banned: { type: 'Boolean' } } },
    {
      className: 'Letter',
      fields: { from: { type: 'Pointer', targetClass: 'Fan' }, rank: { type: 'Number' } },
    },
    { className: 'Critic', fields: { name: { type: 'String' } } },
  ],
  users: ['ada', 'bob'].map((objectId) => ({ objectId, username: objectId })),
  roles: [{ objectId: 'team', name: 'team', users: ['ada'], roles: [] }],
  objects: {
    Critic: [{ objectId: 'c1', name: 'Crux' }],
    Fan: everyFan.map(({ objectId }, rank) => ({ objectId, rank, ...(rank === 7 && { banned: true }) })),
    Letter: [6, 7, 2_400].map((rank) => ({
      objectId: `letter${rank}`,
      rank,
      from: pointer('Fan', fan(rank)),
    })),
    Album: [
      {
        objectId: 'loved',
        title: 'Loved',
        fans: related(everyFan),
        critics: related([pointer('Critic', 'c1')]),
      },
      { objectId: 'known', title: 'Known', fans: related([pointer('Fan', fan(6)), pointer('Fan', fan(7))]) },
      { objectId: 'hated', title: 'Hated', fans: related([pointer('Fan', fan(7))]) },
      { objectId: 'lone', title: 'Lone' },
    ],
  },
};
const CONFIG = {
  agents: {
    reader: { rateLimit: 1_000_000, filters: { Fan: { banned: { $ne: true } } } },
    everything: { rateLimit: 1_000_000 },
  },
  auth: ['reader', 'everything'].map((agent) => ({ apiKey: `key-${agent}`, agent })),
  policy: { unlistedClasses: 'allow', classes: { Critic: { hidden: true } } },
};

let parse: ParseUnderTest;
let services: Record<string, Service>;
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(SEED);
  const database = { uri: parse.databaseUri, name: parse.databaseName };
  services = {
    'MongoDB alone': await startService({ config: { ...CONFIG, database } }),
    'Parse Server and MongoDB': await startService({
      config: { ...CONFIG, database, parse: parse.config },
    }),
    'Parse Server alone': await startService({ config: { ...CONFIG, parse: parse.config } }),
  };
}, 180_000);
afterAll(async () => {
  for (const service of Object.values(services ?? {})) await service.stop();
  await parse?.stop();
});

describe.each(['MongoDB alone', 'Parse Server and MongoDB', 'Parse Server alone'])(
  'a relation, with %s,',
  { timeout: 60_000 },
  (name) => {
    const call = (tool: string, args: object, agent = 'reader') =>
      callTool(services[name] as Service, tool, args, { 'X-MCP-API-Key': `key-${agent}` });
    const ids = async (where: object, class_name = 'Album', agent = 'reader') => {
      const { data, isError, text } = await call(
        'query_class',
        { class_name, where, order: 'objectId' },
        agent,
      );
      expect({ isError, text }).toMatchObject({ isError: false });
      return (data['results'] as { objectId: string }[]).map(({ objectId }) => objectId);
    };
    const count = async (where: object, class_name = 'Album', agent = 'reader') =>
      (await call('count_objects', { class_name, where }, agent)).data['count'];
    const fansOf = (id: string) => ({ $relatedTo: { object: pointer('Album', id), key: 'fans' } });

    it('of thousands of members is read, counted and narrowed', async () => {
      expect(await count(fansOf('loved'), 'Fan')).toBe(FANS - 1);
      expect(await count(fansOf('loved'), 'Fan', 'everything')).toBe(FANS);
      expect(await ids({ ...fansOf('loved'), rank: { $in: [7, 2_499] } }, 'Fan')).toEqual([fan(2_499)]);
      const args = { class_name: 'Fan', field: 'banned', where: fansOf('loved') };
      expect((await call('group_by', args, 'everything')).isError).toBe(false);
    });

    it.each([
      ['a pointer', pointer('Fan', fan(6)), ['known', 'loved']],
      ['an id', fan(6), ['known', 'loved']],
      ['$eq', { $eq: pointer('Fan', fan(6)) }, ['known', 'loved']],
      ['$in', { $in: [fan(6), fan(7)] }, ['known', 'loved']],
      ['$ne', { $ne: pointer('Fan', fan(6)) }, ['hated', 'lone']],
      ['$nin', { $nin: [pointer('Fan', fan(6))] }, ['hated', 'lone']],
      [
        '$inQuery',
        { $inQuery: { className: 'Fan', where: { rank: { $lte: 7, $gte: 6 } } } },
        ['known', 'loved'],
      ],
      ['$notInQuery', { $notInQuery: { className: 'Fan', where: { rank: 6 } } }, ['hated', 'lone']],
    ])('finds the rows that hold a member, by %s', async (_form, fans, expected) => {
      expect(await ids({ fans })).toEqual(expected);
      expect(await count({ $or: [{ fans }, { title: 'Nothing' }] })).toBe(expected.length);
    });

    it('tells nothing of a member that is withheld', async () => {
      const banned = pointer('Fan', fan(7));
      const nobody = pointer('Fan', 'nobody');
      expect(await ids({ fans: banned }, 'Album', 'everything')).toEqual(['hated', 'known', 'loved']);
      for (const form of [
        (one: object) => one,
        ...['$ne', '$eq'].map((op) => (one: object) => ({ [op]: one })),
      ])
        expect(await ids({ fans: form(banned) })).toEqual(await ids({ fans: form(nobody) }));
      for (const op of ['$in', '$nin'])
        expect(await ids({ fans: { [op]: [banned] } })).toEqual(await ids({ fans: { [op]: [nobody] } }));
      for (const op of ['$inQuery', '$notInQuery']) {
        const asked = (rank: number) => ({ fans: { [op]: { className: 'Fan', where: { rank } } } });
        expect(await ids(asked(7))).toEqual(await ids(asked(-1)));
      }
    });

    it('leads into no class that the caller may not use, and compares with nothing else', async () => {
      const asked = (where: object) => call('query_class', { class_name: 'Album', where });
      expect((await asked({ critics: pointer('Critic', 'c1') })).code).toBe('access_denied');
      expect((await asked({ critics: 'c1' })).code).toBe('access_denied');
      for (const fans of [pointer('Letter', 'letter6'), { $gt: 'a' }, { $exists: true }, 5, null]) {
        const { code, text } = await asked({ fans });
        expect(code).toBe('invalid_query');
        expect(text).toContain('Pointer');
      }
    });

    it('of roles is found by their users', async () => {
      expect(await ids({ users: pointer('_User', 'ada') }, '_Role')).toEqual(['team']);
      expect(await ids({ users: pointer('_User', 'bob') }, '_Role')).toEqual([]);
    });

    it('answers a subquery of thousands of rows', async () => {
      const fans = { className: 'Fan', where: { rank: { $gte: 0 } } };
      expect(await ids({ from: { $inQuery: fans } }, 'Letter')).toEqual(['letter2400', 'letter6']);
      expect(await ids({ from: { $notInQuery: fans } }, 'Letter')).toEqual(['letter7']);
      const ranks = { query: fans, key: 'rank' };
      expect(await ids({ rank: { $select: ranks } }, 'Letter')).toEqual(['letter2400', 'letter6']);
      expect(await ids({ rank: { $dontSelect: ranks } }, 'Letter')).toEqual(['letter7']);
    });
  },
);
