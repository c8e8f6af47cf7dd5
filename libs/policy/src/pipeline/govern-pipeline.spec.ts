import { refusals } from '#core';
import { describe, expect, it } from 'vitest';
import { INTERNAL_FIELDS } from '../model/field-names.js';
import type { Where } from '../model/where.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { governPipeline, type JoinScope, joinTargets } from './govern-pipeline.js';
import { TAKEN_COLUMNS } from './source-stages.js';
import { validatePipeline } from './validate-pipeline.js';

const OWN = { orgId: 'o1' };
const THEIRS: Record<string, Where> = { Artist: { orgId: 'o1' }, Note: {}, _User: { orgId: 'o1' } };

function scope(className: string): JoinScope {
  return { access: music(className), where: THEIRS[className] ?? {} };
}
function reachJoin(className: string) {
  const answer = shopReach.reach(className, 'pipeline');
  return 'gate' in answer ? answer : scope(className);
}
const govern = (pipeline: unknown, where: Where = OWN, className = 'Song') =>
  governPipeline(validatePipeline(pipeline), { access: music(className), where }, reachJoin);

const project = (className: string) => ({
  $project: Object.fromEntries([...(music(className).readable ?? [])].map((name) => [name, 1])),
});
const unset = { $unset: [...TAKEN_COLUMNS] };
const artistLead = [{ $match: { orgId: 'o1' } }, project('Artist')];

describe('governPipeline: the source', () => {
  it('merges the row limits with a leading $match of the caller', () => {
    expect(govern([{ $match: { play_count: { $gt: 1 } } }, { $limit: 5 }])).toEqual([
      { $match: { $and: [OWN, { playCount: { $gt: 1 } }] } },
      project('Song'),
      { $limit: 5 },
    ]);
  });

  it('puts the row limits in front of any other first stage', () => {
    expect(govern([{ $limit: 5 }])).toEqual([{ $match: OWN }, project('Song'), { $limit: 5 }]);
  });

  it('projects the source even when nothing limits its rows', () => {
    expect(govern([{ $limit: 5 }], {})).toEqual([project('Song'), { $limit: 5 }]);
  });

  it('keeps a filter over whole documents behind the projection', () => {
    const whole = { $match: { $expr: { $gt: ['$$ROOT', { title: 'x' }] } } };
    expect(govern([whole])).toEqual([{ $match: OWN }, project('Song'), whole]);
  });

  it('takes internal columns from a class without allowlist', () => {
    expect(govern([{ $limit: 5 }], {}, 'Note')).toEqual([unset, { $limit: 5 }]);
  });

  it('reduces the source of every pipeline by the same stage, which nothing can change', () => {
    const source = { access: music('Song'), where: {} };
    const findFirst = (stage: object) => governPipeline(validatePipeline([stage]), source, reachJoin)[0];
    const first = findFirst({ $limit: 1 });
    expect(findFirst({ $skip: 1 })).toBe(first);
    expect(first).toEqual(project('Song'));
    expect(() => Object.assign(first?.['$project'] as object, { royalty: 1 })).toThrow(TypeError);
  });

  it('shows placeholders in a column that a pipeline reads, whatever other pipelines read', () => {
    const mayHold = {
      columns: new Set(['genre']),
      names: { kind: 'listed', classes: ['Vault'], inTexts: ['Vault'] },
    } as const;
    const source = { access: { ...music('Song'), mayHold }, where: {} };
    const genreFor = (stage: object) => {
      const [first] = governPipeline(validatePipeline([stage]), source, reachJoin);
      return (first?.['$project'] as Where | undefined)?.['genre'];
    };
    const read = genreFor({ $sort: { genre: 1 } });
    expect(read).toMatchObject({ $cond: expect.any(Array) as unknown });
    expect(genreFor({ $limit: 1 })).toBe(1);
    expect(genreFor({ $sort: { genre: 1 } })).toEqual(read);
  });

  it('takes every internal column by exactly one name', () => {
    const stored: Record<string, readonly string[]> = {
      ACL: ['_acl', '_rperm', '_wperm'],
      sessionToken: ['_session_token'],
    };
    expect(new Set(INTERNAL_FIELDS.flatMap((name) => stored[name] ?? [name]))).toEqual(
      new Set(TAKEN_COLUMNS),
    );
    expect(new Set(TAKEN_COLUMNS).size).toBe(TAKEN_COLUMNS.length);
  });

  it('lists the columns of _User, whose login columns have no fixed names', () => {
    expect(govern([{ $limit: 5 }], {}, '_User')).toEqual([
      { $project: { objectId: 1, createdAt: 1, updatedAt: 1, username: 1, email: 1 } },
      { $limit: 5 },
    ]);
  });

  it('puts text and distance searches on its own rows first, where the database allows them', () => {
    const near = { place: { $near: { __type: 'GeoPoint', latitude: 0, longitude: 0 } } };
    expect(govern([{ $limit: 1 }], near)[0]).toEqual({ $match: near });
  });

  it('refuses a source filter that still asks another class', () => {
    const unanswered = { $relatedTo: { object: {}, key: 'fans' } };
    expect(catchRefusal(() => govern([{ $limit: 1 }], unanswered))).toMatchObject({ code: 'access_denied' });
  });
});

describe('governPipeline: joins', () => {
  it('limits a join by fields, which keeps its fields', () => {
    const join = { from: 'Artist', localField: 'artist', foreignField: '_id', as: 'singer' };
    expect(govern([{ $lookup: join }])[2]).toEqual({
      $lookup: { ...join, foreignField: 'objectId', pipeline: artistLead },
    });
  });

  it('merges the limits with the leading $match of a sub-pipeline', () => {
    const join = {
      from: 'Artist',
      let: { a: '$artist' },
      pipeline: [{ $match: { name: 'Nina' } }],
      as: 'singer',
    };
    expect(govern([{ $lookup: join }])[2]).toEqual({
      $lookup: {
        ...join,
        pipeline: [{ $match: { $and: [{ orgId: 'o1' }, { name: 'Nina' }] } }, project('Artist')],
      },
    });
  });

  it('limits joins at any depth and inside $facet', () => {
    const join = { from: 'Artist', localField: 'artist', foreignField: 'objectId', as: 'x' };
    const governed = govern([
      {
        $facet: {
          one: [{ $unionWith: { coll: 'Note', pipeline: [{ $lookup: { ...join, localField: 'title' } }] } }],
        },
      },
    ]);
    expect(governed[2]).toEqual({
      $facet: {
        one: [
          {
            $unionWith: {
              coll: 'Note',
              pipeline: [
                unset,
                project('Song'),
                { $lookup: { ...join, localField: 'title', pipeline: artistLead } },
              ],
            },
          },
        ],
      },
    });
  });

  it.each(['User', '_User'])('joins %s under its stored name', (from) => {
    const [, , join] = govern([
      { $lookup: { from, localField: 'artist', foreignField: 'objectId', as: 'u' } },
    ]);
    expect(join).toMatchObject({ $lookup: { from: '_User', pipeline: [{ $match: { orgId: 'o1' } }, {}] } });
  });

  it('shows of union rows only what both classes allow', () => {
    const [, , union] = govern([{ $unionWith: 'Artist' }]);
    expect(union).toEqual({
      $unionWith: {
        coll: 'Artist',
        pipeline: [...artistLead, { $project: { title: 1, objectId: 1, createdAt: 1, updatedAt: 1 } }],
      },
    });
  });

  it('filters every step of a graph search and shows of its rows only the allowlist', () => {
    const search = {
      from: 'Artist',
      startWith: '$artist',
      connectFromField: 'mentor',
      connectToField: '_id',
      as: 'line',
      depthField: 'steps',
      restrictSearchWithMatch: { name: 'x' },
    };
    const [, , graph, shown] = govern([{ $graphLookup: search }]);
    expect(graph).toEqual({
      $graphLookup: {
        ...search,
        connectToField: 'objectId',
        restrictSearchWithMatch: { $and: [{ orgId: 'o1' }, { name: 'x' }] },
      },
    });
    expect(shown).toEqual({
      $addFields: {
        line: {
          $map: {
            input: '$line',
            as: 'row',
            in: Object.fromEntries(
              [...(music('Artist').readable ?? []), 'steps'].map((name) => [name, `$$row.${name}`]),
            ),
          },
        },
      },
    });
  });

  it('takes internal columns from a graph search into a class without allowlist', () => {
    const search = { from: 'Note', startWith: '$title', connectFromField: 'a', connectToField: 'b', as: 'n' };
    const [, , graph, cleaned] = govern([{ $graphLookup: search }]);
    expect(graph).toEqual({ $graphLookup: search });
    expect(cleaned).toEqual({ $unset: TAKEN_COLUMNS.map((name) => `n.${name}`) });
  });

  it.each<[string, Where]>([
    ['a text search', { $text: { $search: 'x' } }],
    ['a distance search', { $or: [{ place: { $nearSphere: {} } }] }],
    ['a question to another class', { artist: { $inQuery: { className: 'Artist', where: {} } } }],
  ])('refuses a join whose class is limited by %s', (_, where) => {
    const refusal = catchRefusal(() =>
      governPipeline(validatePipeline([{ $unionWith: 'Note' }]), scope('Song'), () => ({
        access: music('Note'),
        where,
      })),
    );
    expect(refusal).toMatchObject({ code: 'access_denied', details: { kind: 'tenant_join_denied' } });
  });

  it('passes on what the class gate says of a join target, at any depth', () => {
    expect(catchRefusal(() => govern([{ $facet: { a: [{ $unionWith: 'Vault' }] } }]))).toEqual(
      refusals.hiddenClass('Vault'),
    );
    expect(catchRefusal(() => govern([{ $unionWith: 'Ledger' }]))).toMatchObject({
      details: { kind: 'class_filter' },
    });
  });

  it('lists the classes a pipeline joins, under their stored names', () => {
    const pipeline = validatePipeline([
      {
        $unionWith: {
          coll: 'Note',
          pipeline: [
            {
              $graphLookup: {
                from: 'Artist',
                startWith: '$x',
                connectFromField: 'a',
                connectToField: 'b',
                as: 'c',
              },
            },
          ],
        },
      },
      { $facet: { a: [{ $lookup: { from: 'User', pipeline: [], as: 'u' } }] } },
    ]);
    expect([...joinTargets(pipeline)].sort()).toEqual(['Artist', 'Note', '_User']);
  });
});
