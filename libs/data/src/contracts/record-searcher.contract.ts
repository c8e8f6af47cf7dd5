import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  FacetQuery,
  RecordSearcher,
  TextMatch,
  TextSearchQuery,
  VectorSearchQuery,
} from '../record-search.js';
import { PATIENT, unhurried } from './operation.js';

export interface OpenSearcher {
  readonly searcher: RecordSearcher;
  close(): Promise<void>;
}

const pointer = (objectId: string) => ({ __type: 'Pointer', className: 'Label', objectId });
const text = (query: string, ...paths: string[]): TextMatch => ({ kind: 'text', query, paths });
const everything: TextMatch = { kind: 'everything' };

const SEED = {
  schemas: [
    {
      className: 'Tune',
      fields: {
        title: { type: 'String' },
        notes: { type: 'String' },
        moods: { type: 'Array' },
        tempo: { type: 'Number' },
        released: { type: 'Date' },
        label: { type: 'Pointer', targetClass: 'Label' },
        sound: { type: 'Array' },
      },
    },
    { className: 'Label', fields: { name: { type: 'String' } } },
  ],
  objects: {
    Tune: [
      {
        objectId: 't1',
        title: 'Slow river',
        notes: 'A river runs. Slowly.',
        moods: ['calm', 'sad'],
        tempo: 60,
        sound: [1, 0],
        label: pointer('l1'),
        released: { __type: 'Date', iso: '2020-05-01T00:00:00.000Z' },
        ACL: { '*': { read: true } },
      },
      {
        objectId: 't2',
        title: 'River city',
        notes: 'Streets.',
        moods: ['calm'],
        tempo: 120,
        sound: [0.6, 0.8],
        label: pointer('l2'),
        released: { __type: 'Date', iso: '2021-05-01T00:00:00.000Z' },
        ACL: { ada: { read: true } },
      },
      {
        objectId: 't3',
        title: 'City lights',
        notes: 'No water.',
        moods: [],
        tempo: 125,
        sound: [0, 1],
        label: pointer('l1'),
      },
    ],
    Label: [
      { objectId: 'l1', name: 'North' },
      { objectId: 'l2', name: 'South' },
    ],
  },
};

export interface SearcherCapabilities {
  /** Whether rows have rights of their own. Default true. */
  readonly rowRights?: boolean;
}

/** The contract of every record searcher. @param open a store with search that contains the given seed */
export function recordSearcherContract(
  name: string,
  open: (seed: unknown) => Promise<OpenSearcher>,
  { rowRights = true }: SearcherCapabilities = {},
): void {
  describe(`${name} searches records`, PATIENT, () => {
    let store: OpenSearcher;
    beforeAll(async () => {
      store = await open(SEED);
    });
    afterAll(() => store.close());

    const find = (query: Partial<TextSearchQuery> & Pick<TextSearchQuery, 'match'>) =>
      store.searcher.text(
        { className: 'Tune', index: 'default', where: {}, limit: 10, ...query },
        unhurried(),
      );
    const nearest = (query: Partial<VectorSearchQuery>) =>
      store.searcher.nearest(
        {
          className: 'Tune',
          index: 'v',
          field: 'sound',
          vector: [1, 0],
          filter: {},
          where: {},
          candidates: 100,
          limit: 10,
          ...query,
        },
        unhurried(),
      );
    const count = (query: Partial<FacetQuery> & Pick<FacetQuery, 'facets'>) =>
      store.searcher.facets(
        { className: 'Tune', index: 'default', match: everything, where: {}, ...query },
        unhurried(),
      );
    const ids = (hits: readonly { row: Record<string, unknown> }[]) => hits.map(({ row }) => row['objectId']);

    it('finds words in the fields it is given, the best row first, in Parse form', async () => {
      const hits = await find({ match: text('slow river', 'title', 'notes'), ranksByIndex: true });
      expect(ids(hits)).toEqual(['t1', 't2']);
      expect(hits[0]?.row).toMatchObject({
        title: 'Slow river',
        label: pointer('l1'),
        createdAt: expect.any(String),
      });
      expect(Number(hits[0]?.score)).toBeGreaterThan(hits[1]?.score ?? Infinity);
      expect(JSON.stringify(hits)).not.toMatch(/_rperm|_p_label|_i_/);
      expect(ids(await find({ match: text('river', 'notes') }))).toEqual(['t1']);
    });

    it('counts the words that each row contains, and no other row, unless it may rank by the whole index', async () => {
      const scores = async (query: string, limit?: number) =>
        (await find({ match: text(query, 'title', 'notes'), ...(limit && { limit }) })).map(
          ({ row, score }) => [row['objectId'], score],
        );
      expect(await scores('river')).toEqual([
        ['t1', 1],
        ['t2', 1],
      ]);
      expect(await scores('lights city')).toEqual([
        ['t3', 2],
        ['t2', 1],
      ]);
      expect(await scores('city  lights city', 1)).toEqual([['t3', 2]]);
      const many = Array.from({ length: 80 }, (_, index) => `word${index}`).join(' ');
      expect(await scores(`${many} river`)).toHaveLength(2);
      const begun = await find({
        match: { kind: 'autocomplete', query: 'riv', path: 'title', fuzzy: false },
      });
      expect(new Set(begun.map(({ score }) => score))).toEqual(new Set([1]));
    });

    it('applies the constraint before it counts to the limit', async () => {
      expect(
        ids(await find({ match: text('city', 'title'), where: { label: pointer('l1') }, limit: 1 })),
      ).toEqual(['t3']);
      // Without rights of their own, the rows that a field selects stand for those that the principals may read.
      const readable = rowRights
        ? { $readableBy: { principals: ['*', 'bob'] } }
        : { title: { $ne: 'River city' } };
      expect(new Set(ids(await find({ match: everything, where: readable })))).toEqual(new Set(['t1', 't3']));
      expect(await find({ match: everything, limit: 0 })).toEqual([]);
    });

    it('answers with the columns that were asked for', async () => {
      const [hit] = await find({ match: text('lights', 'title'), keys: ['title'] });
      expect(Object.keys(hit?.row ?? {}).sort()).toEqual(['createdAt', 'objectId', 'title', 'updatedAt']);
      expect(hit?.highlights).toEqual([]);
    });

    it('shows the passages of the field that was asked for', async () => {
      const [hit] = await find({ match: text('river', 'title', 'notes'), highlight: 'notes' });
      expect(hit?.highlights).toEqual([
        {
          path: 'notes',
          texts: [
            { value: 'A ', type: 'text' },
            { value: 'river', type: 'hit' },
            { value: ' runs. ', type: 'text' },
          ],
        },
      ]);
    });

    it('completes what was begun, forgiving a letter when asked to', async () => {
      const begun = (query: string, fuzzy = false): TextMatch => ({
        kind: 'autocomplete',
        query,
        path: 'title',
        fuzzy,
      });
      expect(new Set(ids(await find({ match: begun('riv') })))).toEqual(new Set(['t1', 't2']));
      expect(await find({ match: begun('rvi') })).toEqual([]);
      expect(await find({ match: begun('rvier', true) })).not.toEqual([]);
    });

    it('ranks rows by similarity, filtered inside the search and on what it found', async () => {
      const hits = await nearest({});
      expect(ids(hits)).toEqual(['t1', 't2', 't3']);
      expect(hits.map(({ score }) => Math.round(Number(score) * 100))).toEqual([100, 80, 50]);
      expect(ids(await nearest({ filter: { tempo: { $gt: 100 } }, limit: 1 }))).toEqual(['t2']);
      expect(ids(await nearest({ where: { label: pointer('l1') }, candidates: 2 }))).toEqual(['t1']);
    });

    it('refuses a vector of another dimension as an error of the search', async () => {
      await expect(nearest({ vector: [1, 2, 3] })).rejects.toMatchObject({ code: 'search_invalid' });
    });

    const facets: FacetQuery['facets'] = new Map([
      ['mood', { type: 'string', path: 'moods' } as const],
      ['speed', { type: 'number', path: 'tempo', boundaries: [0, 100, 200, 300] } as const],
      [
        'when',
        {
          type: 'date',
          path: 'released',
          boundaries: ['2020-01-01T00:00:00.000Z', '2021-01-01T00:00:00.000Z'],
        } as const,
      ],
    ]);

    it('counts facets over everything and over what was found', async () => {
      const all = await count({ facets });
      expect(all.total).toBe(3);
      expect(Object.fromEntries(all.facets)).toEqual({
        mood: [
          { _id: 'calm', count: 2 },
          { _id: 'sad', count: 1 },
        ],
        speed: [
          { _id: 0, count: 1 },
          { _id: 100, count: 2 },
          { _id: 200, count: 0 },
        ],
        when: [{ _id: '2020-01-01T00:00:00.000Z', count: 1 }],
      });
      const some = await count({ facets, match: text('lights', 'title') });
      expect([some.total, some.facets.get('mood')]).toEqual([1, []]);
    });

    it('counts nothing that the constraint leaves out', async () => {
      const readable = rowRights ? { $readableBy: { principals: ['*'] } } : { title: { $ne: 'River city' } };
      const counted = await count({ facets, where: readable });
      expect(counted.total).toBe(2);
      expect(Object.fromEntries(counted.facets)).toEqual({
        mood: [
          { _id: 'calm', count: 1 },
          { _id: 'sad', count: 1 },
        ],
        speed: [
          { _id: 0, count: 1 },
          { _id: 100, count: 1 },
          { _id: 200, count: 0 },
        ],
        when: [{ _id: '2020-01-01T00:00:00.000Z', count: 1 }],
      });
    });
  });
}
