import { refusals } from '#core';
import fc from 'fast-check';
import { aggregate } from 'mingo';
import { describe, expect, it } from 'vitest';
import type { GovernedPipeline } from '../model/where.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { governPipeline, type JoinScope } from './govern-pipeline.js';
import { anyNames, pipelines } from './pipelines.fixture.js';
import { validatePipeline } from './validate-pipeline.js';

type Row = Record<string, unknown>;
type Shop = Record<string, Row[]>;

/** A row of a class without allowlist: nothing to hide but what is internal. */
const open = (objectId: string, secret: string, shown: Row): Row => ({
  objectId,
  createdAt: 1,
  updatedAt: 2,
  ...shown,
  _hashed_password: `${secret} hash`,
  _rperm: [`${secret} reader`],
  authData: { id: `${secret} login` },
});

const row = (objectId: string, secret: string, shown: Row): Row => ({
  ...open(objectId, secret, shown),
  royalty: `${secret} royalty`,
  fee: { amount: `${secret} fee` },
  _auth_data_x: { id: `${secret} login` },
  orgId: 'ours',
});

/** A shop whose hidden columns and whose rows of other tenants are made of `secret`; all else is always the same. */
function shop(secret: string): Shop {
  const songs = ['s1', 's2', 's3'].map((id, i) =>
    row(id, `${secret}${i}`, {
      title: `t${i % 2}`,
      genre: 'rock',
      playCount: i,
      meta: { a: i },
      tags: ['a', 'b'],
    }),
  );
  const foreign = row('sx', secret, {
    title: `${secret} song`,
    genre: secret,
    playCount: 99,
    tags: [secret],
  });
  const artists = ['a1', 'a2'].map((id, i) =>
    row(id, `${secret}${i}`, { name: `n${i}`, title: `t${i}`, favourite: 's1', mentor: 'a1' }),
  );
  return {
    Song: [{ ...foreign, orgId: 'theirs' }, ...songs],
    Artist: [
      ...artists,
      { ...row('ax', secret, { name: secret, title: 't1', mentor: 'a1' }), orgId: 'theirs' },
    ],
    Note: [open('n1', secret, { body: 'b', title: 't0', genre: 'rock' })],
    _User: [open('u1', secret, { username: 'ada', _auth_data_x: { id: `${secret} login` } })],
  };
}

const WHERE: Record<string, Row> = { Song: { orgId: 'ours' }, Artist: { orgId: 'ours' } };

function govern(pipeline: unknown): GovernedPipeline {
  const source = { access: music('Song'), where: WHERE['Song'] ?? {} };
  return governPipeline(validatePipeline(pipeline), source, (className) => {
    const answer = shopReach.reach(className, 'pipeline');
    return 'gate' in answer ? answer : { access: answer, where: WHERE[className] ?? {} };
  });
}

/** What the database answers, a failure included: an error that depends on a secret shows it as well as a row does. */
function answer(data: Shop, pipeline: GovernedPipeline, className = 'Song'): string {
  try {
    const rows = aggregate(structuredClone(data[className] ?? []), structuredClone([...pipeline]), {
      collectionResolver: (name) => structuredClone(data[name] ?? []),
    });
    return JSON.stringify(rows);
  } catch (error) {
    return error instanceof Error ? error.name : 'failed';
  }
}

describe('a governed pipeline', { timeout: 60_000 }, () => {
  it('never lets its answer depend on a hidden column, an internal column or a row of another tenant', () => {
    const [one, other] = [shop('SECRET-1'), shop('OTHER-22')];
    let answered = 0;
    fc.assert(
      fc.property(pipelines(['Song', 'Artist', 'Note', 'User'], anyNames), (pipeline) => {
        let governed: GovernedPipeline = [];
        if (catchRefusal(() => (governed = govern(pipeline)))) return;
        const output = answer(one, governed);
        expect(output).toBe(answer(other, governed));
        if (output.startsWith('[{')) answered += 1;
      }),
      { numRuns: 500 },
    );
    // The property is worth something only when many of the pipelines run and return rows.
    expect(answered).toBeGreaterThan(30);
  });

  const pairs = { $project: { pairs: { $objectToArray: '$$ROOT' } } };
  const holding = (k: string, v: unknown) => [pairs, { $match: { pairs: { k, v } } }];

  it.each<[string, unknown[]]>([
    ['reads rows as they are', [{ $limit: 9 }]],
    ['leaves one column out', [{ $project: { title: 0 } }]],
    ['takes one column away', [{ $unset: 'title' }]],
    ['collects whole documents', [{ $group: { _id: null, all: { $push: '$$ROOT' } } }]],
    ['turns documents into pairs', [pairs]],
    ['filters by a pair of a hidden column', holding('royalty', 'SECRET-10 royalty')],
    ['filters by a pair of an internal column', holding('_hashed_password', 'SECRET-10 hash')],
    [
      'compares whole documents',
      [{ $match: { $expr: { $gt: ['$$ROOT', { createdAt: 1, objectId: 'a' }] } } }],
    ],
    ['sorts by whole documents', [{ $addFields: { x: '$$ROOT' } }, { $sort: { x: 1 } }, { $limit: 1 }]],
    ['joins and looks at pairs', [{ $lookup: { from: 'Artist', pipeline: [pairs], as: 'joined' } }]],
    [
      'filters a join by pairs',
      [
        {
          $lookup: {
            from: 'Artist',
            pipeline: holding('fee', { amount: 'SECRET-10 fee' }),
            as: 'joined',
          },
        },
      ],
    ],
    [
      'carries the document into a join',
      [
        {
          $lookup: {
            from: 'Artist',
            let: { v: '$$ROOT' },
            pipeline: [{ $project: { x: { $objectToArray: '$$v' } } }],
            as: 'joined',
          },
        },
      ],
    ],
    [
      'joins by fields',
      [{ $lookup: { from: 'Artist', localField: 'title', foreignField: 'title', as: 'joined' } }],
    ],
    ['unites classes', [{ $unionWith: 'Artist' }, pairs]],
    ['unites users', [{ $unionWith: 'User' }, pairs]],
    ['unites a class without allowlist', [{ $unionWith: 'Note' }, pairs]],
    [
      'walks a graph',
      [
        {
          $graphLookup: {
            from: 'Artist',
            startWith: 'a1',
            connectFromField: 'mentor',
            connectToField: 'objectId',
            as: 'joined',
          },
        },
        pairs,
      ],
    ],
    ['looks into $facet branches', [{ $facet: { x: [{ $unionWith: 'Artist' }, pairs] } }]],
    ['replaces documents by themselves', [{ $replaceWith: '$$ROOT' }]],
    ['merges documents', [{ $project: { x: { $mergeObjects: ['$$ROOT', { y: 1 }] } } }]],
    ['uncovers a column by setting below it', [{ $addFields: { 'royalty.x': 1, fee: { x: 1 } } }]],
  ])('keeps its secrets when a caller %s', (_, pipeline) => {
    const governed = govern(pipeline);
    const output = answer(shop('SECRET-1'), governed);
    expect(output).toMatch(/^\[/);
    expect(output).not.toMatch(/SECRET|theirs/);
    expect(output).toBe(answer(shop('OTHER-22'), governed));
  });
});

describe('a pipeline over pointers into a withheld class', { timeout: 60_000 }, () => {
  const target = { className: 'Artist', refusal: refusals.hiddenClass('Artist') };
  const withheld = new Map([['artist', target]]);
  const song = new Map([['song', { ...target, className: 'Song' }]]);
  const scopes: Record<string, JoinScope> = {
    Song: { access: { ...music('Song'), withheld }, where: {} },
    Note: { access: { ...music('Note'), withheld: song }, where: {} },
  };
  const shop = (secret: string): Shop => {
    const pointers = [
      (className: string) => `${className}$${secret}`,
      (className: string) => ({ __type: 'Pointer', className, objectId: secret }),
      () => null,
    ];
    const rows = [...pointers, undefined].map((made, i) => ({
      objectId: `r${i}`,
      title: `t${i}`,
      ...(made && { artist: made('Artist'), song: made('Song') }),
    }));
    return {
      Song: rows.map(({ song: _song, ...row }) => row),
      Note: rows.map(({ artist: _artist, ...row }) => row),
    };
  };
  const over = (className: string, pipeline: unknown) =>
    governPipeline(
      validatePipeline(pipeline),
      scopes[className] as JoinScope,
      (name) => scopes[name] ?? refusals.hiddenClass(name),
    );
  const output = (data: Shop, className: string, pipeline: GovernedPipeline) =>
    answer(data, pipeline, className);

  const all = { $group: { _id: null, all: { $push: '$$ROOT' } } };
  const pairs = { $project: { pairs: { $objectToArray: '$$ROOT' } } };
  const restrictJoined = (from: string) => ({ $lookup: { from, pipeline: [pairs], as: 'joined' } });

  describe.each([
    ['Song', 'artist'],
    ['Note', 'song'],
  ])('of %s', (className, field) => {
    it.each<[string, unknown[]]>([
      ['rows as they are', [{ $limit: 9 }]],
      ['the column by name', [{ $project: { [field]: 1 } }]],
      ['a computed value', [{ $project: { x: `$${field}` } }]],
      ['groups', [{ $sortByCount: `$${field}` }]],
      ['whole documents', [all]],
      ['pairs', [pairs]],
      ['merged documents', [{ $replaceWith: { $mergeObjects: ['$$ROOT', { y: 1 }] } }]],
      ['a sort', [{ $sort: { [field]: 1, title: 1 } }]],
      ['joined rows', [restrictJoined(className)]],
      ['united rows', [{ $unionWith: { coll: className, pipeline: [pairs] } }]],
      ['a branch', [{ $facet: { x: [all] } }]],
      [
        'rows of a graph',
        [
          {
            $graphLookup: {
              from: className,
              startWith: '$title',
              connectFromField: 'title',
              connectToField: 'title',
              as: 'joined',
            },
          },
        ],
      ],
    ])('shows one placeholder for all of them in %s', (_, pipeline) => {
      const governed = over(className, pipeline);
      const shown = output(shop('SECRET-1'), className, governed);
      expect(shown).toContain('__redacted');
      expect(shown).not.toContain('SECRET');
      expect(shown).toBe(output(shop('OTHER-22'), className, governed));
    });
  });

  it('gives the same answer in two worlds, whatever is asked', () => {
    const asked = ['title', 'artist', 'song', 'objectId'].map((name) => `$${name}`);
    const value = fc.constantFrom<unknown>(...asked, '$$ROOT', '$x');
    const stage = fc.oneof(
      value.map((of) => ({ $addFields: { x: of } })),
      value.map((of) => ({ $group: { _id: of, x: { $push: '$$ROOT' } } })),
      value.map((of) => ({ $sortByCount: of })),
      value.map((of) => ({ $match: { $expr: { $gt: [of, { $literal: 'Artist$P' }] } } })),
      fc.constantFrom(
        pairs,
        all,
        restrictJoined('Note'),
        restrictJoined('Song'),
        { $unionWith: 'Note' },
        { $unionWith: 'Song' },
      ),
      fc.constantFrom(
        { $unset: 'artist' },
        { $sort: { artist: 1 } },
        { $sort: { song: -1 } },
        { $unwind: '$x' },
      ),
      fc.constant({ $match: { artist: { $exists: true } } }),
    );
    let shown = 0;
    fc.assert(
      fc.property(
        fc.constantFrom('Song', 'Note'),
        fc.array(stage, { maxLength: 4 }),
        (className, pipeline) => {
          let governed: GovernedPipeline = [];
          if (catchRefusal(() => (governed = over(className, pipeline)))) return;
          const one = output(shop('SECRET-1'), className, governed);
          expect(one).toBe(output(shop('OTHER-22'), className, governed));
          if (one.includes('__redacted')) shown += 1;
        },
      ),
      { numRuns: 300 },
    );
    expect(shown).toBeGreaterThan(30);
  });
});
