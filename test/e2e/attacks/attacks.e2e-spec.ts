import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Service, startService } from '../../support/service.js';
import { type PlainSeed, startPlainService } from '../../support/plain-seed.js';
import { POSTS_SEED, POSTS_CONFIG, POSTS_POLICY } from '../../fixtures/posts.fixture.js';

/** Ids that stand only behind pointers no agent of this suite may follow. */
const CONTRACT_ID = 'k7contractk7';
const GHOSTWRITER_ID = 'g9ghostg9';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const contract = pointer('Contract', CONTRACT_ID);

/** The posts with pointers into the hidden class in every place a row can hold one. */
function seed() {
  const [post, ...others] = POSTS_SEED.schemas;
  const desk = {
    className: 'Desk',
    fields: {
      label: { type: 'String' },
      contract: { type: 'Pointer', targetClass: 'Contract' },
      deals: { type: 'Array' },
      terms: { type: 'Object' },
      papers: { type: 'Array' },
      plain: { type: 'Object' },
    },
  };
  return {
    ...POSTS_SEED,
    schemas: [
      {
        ...post,
        fields: { ...post?.fields, ghostwriter: { type: 'Pointer', targetClass: 'Author' } },
      },
      ...others,
      desk,
    ],
    objects: {
      ...POSTS_SEED.objects,
      Contract: [{ objectId: CONTRACT_ID, clause: 'none', createdAt: '2025-01-01T00:00:00.000Z' }],
      Desk: [
        {
          objectId: 'd1',
          label: 'city',
          contract,
          deals: [contract],
          terms: { ref: contract, days: 3, parts: [{ of: contract, n: 1 }], at: pointer('Author', 'w1') },
          plain: { ref: { className: 'Contract', objectId: CONTRACT_ID } },
          papers: [contract, pointer('Author', 'w1'), { note: 'kept', list: [[contract]] }],
        },
      ],
      Post: POSTS_SEED.objects.Post.map((row) => ({
        ...row,
        contract,
        ghostwriter: pointer('Author', GHOSTWRITER_ID),
      })),
    },
  };
}

const config = {
  ...POSTS_CONFIG,
  policy: {
    unlistedClasses: 'allow',
    classes: {
      ...POSTS_POLICY.classes,
      Desk: { properties: { deals: { targetClass: 'Contract' } } },
    },
  },
};

/** The same rows with declared references alone: no object of Parse stands in a document of another program. */
function plainSeed(): PlainSeed {
  const { schemas, objects } = seed();
  const undeclared = new Set(['terms', 'papers', 'plain']);
  const declared = (schemas as PlainSeed['schemas']).map(({ className, fields }) => ({
    className,
    fields: Object.fromEntries(Object.entries(fields).filter(([name]) => !undeclared.has(name))),
  }));
  return { schemas: declared, objects };
}

const services = {} as Record<'Parse' | 'plain', Service>;
let service: Service;
beforeAll(async () => {
  const [parse, plain] = await Promise.all([
    startService({ seed: seed(), config }),
    startPlainService(plainSeed(), config),
  ]);
  Object.assign(services, { Parse: parse, plain });
  service = parse;
});
afterAll(() => Promise.all(Object.values(services).map((one) => one.stop())));

const aggregate = (className: string, ...pipeline: object[]) =>
  callTool(service, 'aggregate', { class_name: className, pipeline });

describe.each(['Parse', 'plain'] as const)('with classes stored as %s ones,', (form) => {
  let service: Service;
  beforeAll(() => {
    service = services[form];
  });
  const aggregate = (className: string, ...pipeline: object[]) =>
    callTool(service, 'aggregate', { class_name: className, pipeline });

  describe('a graph search', () => {
    it('shows no denied pointer through a depth that borrows its name', async () => {
      const answer = await aggregate('Post', {
        $graphLookup: {
          from: 'Post',
          startWith: '$title',
          connectFromField: 'title',
          connectToField: 'title',
          as: 'found',
          depthField: 'ghostwriter',
          maxDepth: 0,
        },
      });
      expect(answer.isError).toBe(false);
      expect(answer.data['results']).toContainEqual(
        expect.objectContaining({
          found: [expect.objectContaining({ title: 'Post 1', ...(form === 'Parse' && { ghostwriter: 0 }) })],
        }),
      );
      expect(answer.wire).not.toContain(GHOSTWRITER_ID);
    });
  });

  describe('an expression below a field', () => {
    it('is refused, because nobody judges what it reads', async () => {
      const hidden = { $expr: { $eq: ['$internalNote', 'x'] } };
      for (const condition of [
        { $elemMatch: { $and: [hidden] } },
        { $not: { $elemMatch: { $or: [hidden] } } },
      ]) {
        const answer = await aggregate('Post', { $match: { tags: condition } });
        expect(answer.rpcError).toEqual({ code: -32602, message: 'Invalid params' });
      }
    });
  });

  describe('a pointer into a hidden class', () => {
    it.each<[string, object[]]>([
      ['cut', [{ $project: { x: { $substrCP: ['$contract', 9, 20] } } }]],
      ['joined to other text', [{ $project: { x: { $concat: ['-', '$contract'] } } }]],
      ['in another case', [{ $project: { x: { $toLower: '$contract' } } }]],
      ['as a group', [{ $group: { _id: { $concat: ['-', '$contract'] } } }]],
      [
        'through the whole row',
        [
          {
            $project: {
              x: {
                $map: {
                  input: { $objectToArray: '$$ROOT' },
                  in: { $concat: ['-', { $convert: { input: '$$this.v', to: 'string', onError: '' } }] },
                },
              },
            },
          },
        ],
      ],
      [
        'in joined rows',
        [
          { $lookup: { from: 'Desk', pipeline: [], as: 'd' } },
          { $project: { x: { $map: { input: '$d', in: { $concat: ['-', '$$this.contract'] } } } } },
        ],
      ],
      [
        'in rows of a graph search',
        [
          {
            $graphLookup: {
              from: 'Desk',
              startWith: 'city',
              connectFromField: 'label',
              connectToField: 'label',
              as: 'd',
            },
          },
          { $project: { x: { $map: { input: '$d', in: { $concat: ['-', '$$this.contract'] } } } } },
        ],
      ],
      [
        'in a union',
        [{ $unionWith: { coll: 'Desk', pipeline: [{ $project: { x: { $concat: ['-', '$contract'] } } }] } }],
      ],
    ])('is not shown by a pipeline that takes it apart: %s', async (_, pipeline) => {
      for (const className of ['Post', 'Desk']) {
        const answer = await aggregate(className, ...pipeline);
        expect(answer.wire).not.toContain(CONTRACT_ID);
      }
    });

    it.each<[string, object[]]>([
      ['by its storage column', [{ $project: { x: { $concat: ['-', '$_p_contract'] } } }]],
      ['out of a list declared to hold such pointers', [{ $project: { x: '$deals.objectId' } }]],
    ])('is not shown by a class without allowlist either: %s', async (_, pipeline) => {
      expect((await aggregate('Desk', ...pipeline)).wire).not.toContain(CONTRACT_ID);
    });

    it.each<[string, string, object]>([
      ['a pattern', 'Post', { contract: { $regex: 'Contract.k7' } }],
      ['a pattern on its storage column', 'Desk', { _p_contract: { $regex: 'Contract.k7' } }],
      ['the storage column itself', 'Desk', { _p_contract: `Contract$${CONTRACT_ID}` }],
      ['a member of a declared list', 'Desk', { 'deals.objectId': { $regex: '^k7' } }],
      [
        'what another class holds',
        'Post',
        { contract: { $select: { query: { className: 'Desk', where: {} }, key: 'contract' } } },
      ],
      [
        'what a column of its own class holds',
        'Post',
        { title: { $select: { query: { className: 'Desk', where: {} }, key: 'contract' } } },
      ],
    ])('cannot be guessed with %s', async (_, className, where) => {
      for (const answer of [
        await callTool(service, 'count_objects', { class_name: className, where }),
        await aggregate(className, { $match: where }, { $count: 'n' }),
      ]) {
        expect(answer.isError || answer.rpcError !== undefined).toBe(true);
      }
    });

    it('cannot be guessed with an expression in a leading filter', async () => {
      const above = (id: string) => ({
        $expr: { $gt: ['$contract', `Contract$${id}`] },
      });
      const [low, high] = [
        await aggregate('Post', { $match: above('a') }, { $count: 'n' }),
        await aggregate('Post', { $match: above('z') }, { $count: 'n' }),
      ];
      expect([low.isError, high.isError]).toEqual([form === 'plain', form === 'plain']);
      expect(low.data['results']).toEqual(high.data['results']);
    });

    it('cannot be guessed through the foreign side of a join, nor by sorting', async () => {
      // A plain class has no column that leads to a withheld one.
      const kind = form === 'Parse' ? 'hidden_class' : 'field_denied';
      const joined = await aggregate(
        'Post',
        { $addFields: { guess: `Contract$${CONTRACT_ID}` } },
        { $lookup: { from: 'Desk', localField: 'guess', foreignField: 'contract', as: 'd' } },
      );
      expect(joined.details).toMatchObject({ kind });
      const sorted = await callTool(service, 'query_class', { class_name: 'Post', order: 'contract' });
      expect(sorted.details).toMatchObject({ kind });
    });

    it('is not shown by keys that name a member of its column', async () => {
      for (const keys of [['deals.objectId'], ['terms.ref.objectId'], ['contract.objectId']]) {
        const answer = await callTool(service, 'query_class', { class_name: 'Desk', keys });
        expect(answer.isError).toBe(false);
        expect(answer.wire).not.toContain(CONTRACT_ID);
      }
    });

    it.runIf(form === 'Parse')('may still be asked for its presence', async () => {
      const count = async (where: object) =>
        (await callTool(service, 'count_objects', { class_name: 'Post', where })).data['count'];
      expect(await count({ contract: { $exists: true } })).toBe(60);
      expect(await count({ contract: null })).toBe(0);
    });
  });
});

describe('a pointer into a hidden class, inside an object or a list of which the schema knows nothing', () => {
  const inside = (id: string) =>
    [
      { 'terms.ref.objectId': { $gt: id } },
      { terms: { ref: { objectId: { $gt: id } } } },
      { 'terms.ref.objectId': { $regex: `^${id}` } },
      { 'terms.parts.of.objectId': { $gt: id } },
      { 'terms.parts.0.of.objectId': { $gt: id } },
      { 'papers.objectId': { $gt: id } },
      { 'papers.0.objectId': { $gt: id } },
      { $nor: [{ 'terms.ref.objectId': { $lte: id } }] },
      { 'terms.ref.objectId': { $nin: [id] } },
      {
        label: {
          $dontSelect: { query: { className: 'Desk', where: { label: 'city' } }, key: 'terms.ref.objectId' },
        },
        'terms.ref.objectId': { $ne: id },
      },
    ] as const;
  const shownBy = ({ data, isError, rpcError, details }: Awaited<ReturnType<typeof callTool>>) =>
    JSON.stringify([isError, rpcError, details, data['count'], data['results']]);

  it('answers alike in a filter, whatever its id is compared with', async () => {
    const [low, high] = [inside('a'), inside(CONTRACT_ID)];
    for (const [index, where] of low.entries()) {
      const count = (where: object) => callTool(service, 'count_objects', { class_name: 'Desk', where });
      expect([where, shownBy(await count(where))]).toEqual([where, shownBy(await count(high[index] ?? {}))]);
      if (index === low.length - 1) continue;
      const match = (where: object) => aggregate('Desk', { $match: where }, { $count: 'n' });
      expect([where, shownBy(await match(where))]).toEqual([where, shownBy(await match(high[index] ?? {}))]);
    }
  });

  it.each<[string, (id: string) => object[]]>([
    ['of list members', (id) => [{ $match: { papers: { $elemMatch: { objectId: { $gt: id } } } } }]],
    [
      'of whole values in an expression',
      (id) => [{ $match: { $expr: { $gt: ['$terms.ref', { $literal: pointer('Contract', id) }] } } }],
    ],
    [
      'of a whole value that names no type',
      (id) => [
        { $match: { plain: { $gt: { ref: { className: 'Contract', objectId: id } } } } },
        { $count: 'n' },
      ],
    ],
    [
      'on the foreign side of a join',
      (id) => [
        { $addFields: { guess: id } },
        { $lookup: { from: 'Desk', localField: 'guess', foreignField: 'terms.ref.objectId', as: 'd' } },
        { $project: { n: { $size: '$d' } } },
      ],
    ],
    [
      'by the steps of a graph search',
      (id) => [
        {
          $graphLookup: {
            from: 'Desk',
            startWith: { $literal: id },
            connectFromField: 'label',
            connectToField: 'papers.objectId',
            as: 'd',
          },
        },
        { $project: { n: { $size: '$d' } } },
      ],
    ],
    [
      'where rows are cut by their parts',
      (id) => [{ $redact: { $cond: [{ $eq: ['$objectId', id] }, '$$PRUNE', '$$DESCEND'] } }],
    ],
  ])('answers alike in a comparison %s', async (_, pipeline) => {
    expect(shownBy(await aggregate('Desk', ...pipeline('a')))).toBe(
      shownBy(await aggregate('Desk', ...pipeline(CONTRACT_ID))),
    );
  });

  const parts = (row: string) => [
    `${row}terms.ref.objectId`,
    { $objectToArray: `${row}terms.ref` },
    { $objectToArray: { $first: `${row}papers` } },
    { $mergeObjects: [`${row}terms.ref`, { className: 'Author' }] },
    { $setField: { field: 'className', input: `${row}terms.ref`, value: 'Author' } },
    { $getField: { field: 'objectId', input: `${row}terms.ref` } },
    { $map: { input: `${row}papers`, in: '$$this.objectId' } },
    { $map: { input: `${row}terms.parts`, in: '$$this.of.objectId' } },
    { $let: { vars: { v: { $last: `${row}papers` } }, in: { $first: { $first: '$$v.list' } } } },
  ];

  it.each<[string, object[]]>([
    ...parts('$').map((x): [string, object[]] => [JSON.stringify(x), [{ $project: { x } }]]),
    ['another class given to it', [{ $addFields: { 'terms.ref.className': 'Author' } }]],
    ['its class taken away', [{ $unset: ['terms.ref.className', 'papers.className'] }]],
    ['its id alone', [{ $project: { 'terms.ref.objectId': 1 } }]],
    ['it as the row', [{ $replaceWith: '$terms.ref' }, { $project: { x: '$objectId' } }]],
    ['it as the group', [{ $unwind: '$papers' }, { $group: { _id: '$papers.objectId' } }]],
    [
      'whole rows',
      [{ $project: { x: { $objectToArray: { $getField: { field: 'terms', input: '$$ROOT' } } } } }],
    ],
    [
      'joined rows',
      [
        { $lookup: { from: 'Desk', localField: 'label', foreignField: 'label', as: 'd' } },
        { $unwind: '$d' },
        { $project: Object.fromEntries(parts('$d.').map((x, index) => [`x${index}`, x])) },
      ],
    ],
    [
      'rows of a graph search',
      [
        {
          $graphLookup: {
            from: 'Desk',
            startWith: 'city',
            connectFromField: 'label',
            connectToField: 'label',
            as: 'd',
          },
        },
        { $unwind: '$d' },
        { $project: Object.fromEntries(parts('$d.').map((x, index) => [`x${index}`, x])) },
      ],
    ],
    [
      'rows of a union',
      [{ $unionWith: { coll: 'Desk', pipeline: [{ $project: { x: '$terms.ref.objectId' } }] } }],
    ],
  ])('is not shown by a pipeline that takes it apart: %s', async (_, pipeline) => {
    const answer = await aggregate('Desk', ...pipeline);
    expect(answer.wire).not.toContain(CONTRACT_ID);
    expect(answer.isError).toBe(false);
  });

  it('does not keep pipelines and filters from what stands beside it', async () => {
    const seen = await aggregate('Desk', {
      $project: { days: '$terms.days', at: '$terms.at.objectId', n: { $size: '$papers' }, papers: 1 },
    });
    expect(seen.data['results']).toMatchObject([
      {
        days: 3,
        at: 'w1',
        n: 3,
        papers: [
          { className: 'Contract', __redacted: true },
          { className: 'Author', objectId: 'w1' },
          { note: 'kept', list: [[{ className: 'Contract', __redacted: true }]] },
        ],
      },
    ]);
    for (const where of [{ 'terms.days': { $gt: 2 } }, { 'terms.at.objectId': 'w1' }]) {
      const answer = await callTool(service, 'count_objects', { class_name: 'Desk', where });
      expect(answer.data['count']).toBe(1);
    }
  });

  it('does not keep keys from what stands beside it', async () => {
    const kept = await callTool(service, 'query_class', { class_name: 'Desk', keys: ['terms.days'] });
    expect(kept.data['results']).toMatchObject([{ terms: { days: 3 } }]);
    expect(kept.wire).not.toContain('"ref"');
  });

  it('gives no order', async () => {
    const sorted = (order: string) => callTool(service, 'query_class', { class_name: 'Desk', order });
    expect((await sorted('terms.ref.objectId')).wire).toContain('order cannot use it; aggregate can');
    expect((await sorted('papers.objectId')).isError).toBe(true);
    expect((await sorted('terms.days')).isError).toBe(true);
    const pipeline = [{ $sort: { 'terms.days': 1 } }];
    expect((await callTool(service, 'aggregate', { class_name: 'Desk', pipeline })).isError).toBe(false);
  });
});
