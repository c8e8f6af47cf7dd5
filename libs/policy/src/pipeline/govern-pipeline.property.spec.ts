import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasInternalSegment, takeRoot } from '../model/field-names.js';
import { isPlainObject } from '../model/where.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { governPipeline } from './govern-pipeline.js';
import { HIDDEN, newNames, pipelines } from './pipelines.fixture.js';
import { readNewRoot } from './stage-outcomes.js';
import { validatePipeline } from './validate-pipeline.js';

/**
 * Behind a root that is a value of a shown column, names are members of that value and no columns. Only pipelines over another
 * class still name columns there.
 */
function naming(stages: readonly unknown[]): readonly unknown[] {
  const opening = stages.findIndex((stage) => {
    if (!isPlainObject(stage)) return false;
    const { $replaceRoot, $replaceWith } = stage;
    const root = isPlainObject($replaceRoot) ? $replaceRoot['newRoot'] : $replaceWith;
    return root !== undefined && readNewRoot(root).open;
  });
  if (opening === -1) return stages;
  const behind = stages.slice(opening + 1).filter(isPlainObject);
  return [
    ...stages.slice(0, opening + 1),
    ...behind.flatMap(({ $lookup, $unionWith }) =>
      [$lookup, $unionWith].filter(isPlainObject).map(({ pipeline }) => pipeline),
    ),
  ];
}

/** Every column a governed pipeline could mean: its keys and its references. `$$v.x` is a member of a value. */
function namesIn(value: unknown): string[] {
  if (typeof value === 'string') {
    const [, path] = /^(?:\$\$ROOT\.|\$\$CURRENT\.|\$(?!\$))(.+)/.exec(value) ?? [];
    return path === undefined ? [] : [path];
  }
  if (Array.isArray(value)) return naming(value).flatMap(namesIn);
  return isPlainObject(value) ? [...Object.keys(value), ...Object.values(value).flatMap(namesIn)] : [];
}

type Stages = readonly Readonly<Record<string, unknown>>[];

/** Whether the documents have unlisted members of a value, such as those of `$title`, after a `$replaceWith`. */
const isOpen = (root: unknown) =>
  root !== '$$ROOT' &&
  root !== '$$CURRENT' &&
  !(isPlainObject(root) && Object.keys(root).every((key) => !key.startsWith('$')));

/** The names that can only be columns of a class: not those behind an open `$replaceWith`, which are members of its value. */
function columnsIn(stages: Stages, startsOpen = false): string[] {
  let open = startsOpen;
  let followsGraph = false;
  return stages.flatMap((stage) => {
    const [[name, value] = ['', null]] = Object.entries(stage);
    const { pipelines: inner, own, foreign } = partsOf(name, value);
    // The stage behind a graph search is ours, and names columns of its rows.
    const names = open && !followsGraph ? namesIn(foreign) : namesIn({ [name]: { own, foreign } });
    const joined = [...joinFields(foreign), ...(open ? [] : joinFields(own))];
    const nested = inner.flatMap((pipeline) => columnsIn(pipeline, open && name === '$facet'));
    open ||= name === '$replaceWith' && isOpen(value);
    followsGraph = name === '$graphLookup';
    return [...names, ...joined, ...nested];
  });
}

/** What a stage says of its own documents, and what it says of a joined class. */
function partsOf(name: string, value: unknown) {
  const none = { pipelines: [] as Stages[], foreign: {} };
  if (!isPlainObject(value)) return { ...none, own: value };
  if (name === '$facet')
    return { ...none, pipelines: Object.values(value) as Stages[], own: Object.keys(value) };
  if (!['$lookup', '$graphLookup', '$unionWith'].includes(name)) return { ...none, own: value };
  const { localField, startWith, let: variables, pipeline = [], ...foreign } = value;
  return { pipelines: [pipeline as Stages], own: { localField, startWith, let: variables }, foreign };
}

/** Fields that joins name without `$`. */
function joinFields(part: unknown): string[] {
  const fields = isPlainObject(part) ? part : {};
  const names = ['localField', 'foreignField', 'connectFromField', 'connectToField'].map(
    (name) => fields[name],
  );
  return names.filter((name) => typeof name === 'string');
}

const govern = (pipeline: unknown) =>
  governPipeline(validatePipeline(pipeline), { access: music('Song'), where: { scope: 1 } }, (className) => {
    const answer = shopReach.reach(className, 'pipeline');
    return 'gate' in answer ? answer : { access: answer, where: { scope: 1 } };
  });

/** `royalty` is a member of whatever `title` holds. */
const MEMBER_OF_A_VALUE = [
  { $replaceWith: '$title' },
  {
    $graphLookup: {
      from: 'Song',
      startWith: '$royalty',
      connectFromField: 'title',
      connectToField: 'title',
      as: 'joined',
    },
  },
];

describe('governPipeline, for any pipeline', { timeout: 60_000 }, () => {
  it('never mentions a hidden or internal column', () => {
    fc.assert(
      fc.property(pipelines(['Song', 'Artist'], newNames), (pipeline) => {
        let governed: Stages = [];
        if (catchRefusal(() => (governed = govern(pipeline)))) return;
        expect(namesIn(governed).filter(hasInternalSegment)).toEqual([]);
        expect(columnsIn(governed).filter((name) => HIDDEN.includes(takeRoot(name)))).toEqual([]);
      }),
      { numRuns: 500, examples: [[MEMBER_OF_A_VALUE]] },
    );
  });

  it('puts the limits of its class in front of every document source', () => {
    const sources = (stages: unknown): unknown[] => {
      if (Array.isArray(stages)) return stages.flatMap(sources);
      if (!isPlainObject(stages)) return [];
      const { $lookup, $unionWith, $graphLookup } = stages;
      const own = [$lookup, $unionWith]
        .filter(isPlainObject)
        .map(({ pipeline }) => (Array.isArray(pipeline) ? (pipeline[0] as unknown) : undefined));
      const graph = isPlainObject($graphLookup) ? [{ $match: $graphLookup['restrictSearchWithMatch'] }] : [];
      return [...own, ...graph, ...Object.values(stages).flatMap(sources)];
    };
    const isLimited = (first: unknown) =>
      /^\{"\$match":\{("\$and":\[\{)?"scope":1/.test(JSON.stringify(first));
    fc.assert(
      fc.property(pipelines(['Song', 'Artist', 'Note', 'User'], newNames), (pipeline) => {
        let governed: readonly unknown[] = [];
        if (catchRefusal(() => (governed = govern(pipeline)))) return;
        expect([governed[0], ...sources(governed)].filter((first) => !isLimited(first))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it('throws nothing but refusals, whatever it is given', () => {
    const operator = fc.constantFrom(
      '$match',
      '$project',
      '$lookup',
      '$facet',
      '$map',
      '$let',
      'from',
      'pipeline',
      'a.b',
      '$a',
    );
    const { junk } = fc.letrec<{ junk: unknown }>((tie) => ({
      junk: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>(
          null,
          1,
          '',
          '$',
          '$$',
          '$$ROOT',
          '$x.',
          'Song',
          Number.NaN,
          undefined,
          new Date(0),
          Symbol.iterator,
        ),
        fc.array(tie('junk'), { maxLength: 3 }),
        fc.dictionary(operator, tie('junk'), { maxKeys: 3 }),
      ),
    }));
    const stage = fc.tuple(operator, junk).map(([name, value]) => ({ [name]: value }));
    fc.assert(
      fc.property(fc.oneof(junk, fc.array(stage, { maxLength: 3 })), (pipeline) => {
        expect(() => catchRefusal(() => govern(pipeline))).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });

  it('passes every pipeline that uses allowed names only', () => {
    const column = fc.constantFrom(
      'title',
      'play_count',
      'PlayCount',
      'externalStatus',
      'meta.a',
      'createdAt',
      'objectId',
    );
    const reference = column.map((name) => `$${name}`);
    const value = fc.oneof(
      reference,
      fc.constantFrom('$$ROOT', '$$NOW', 'text', 5),
      column.map((name) => `$$ROOT.${name}`),
      reference.map((input) => ({ $map: { input, as: 'v', in: '$$v.royalty' } })),
    );
    const stage = fc.oneof(
      fc.record({
        $match: fc.dictionary(
          fc.constantFrom('title', 'genre', 'meta.a'),
          fc.constantFrom('x', 'a.b', '', '5 $'),
        ),
      }),
      fc.record({ $sort: fc.dictionary(column, fc.constant(1), { minKeys: 1 }) }),
      fc.record({ $addFields: fc.dictionary(newNames, value, { minKeys: 1 }) }),
      fc.record({
        $project: fc.dictionary(fc.constantFrom('royalty', 'title'), fc.constant(0), { minKeys: 1 }),
      }),
      fc.record({ $unwind: reference }),
      fc.record({ $limit: fc.integer({ min: 1, max: 1_000_000 }) }),
      fc.record({
        $lookup: fc.record({
          from: fc.constantFrom('Song', 'Note'),
          localField: column,
          foreignField: column,
          as: newNames,
        }),
      }),
    );
    const last = fc.oneof(
      fc.record({ $group: fc.record({ _id: value, n: fc.record({ $max: value }) }) }),
      fc.record({ $project: fc.dictionary(column, fc.constantFrom(1, true), { minKeys: 1 }) }),
      fc.record({ $facet: fc.dictionary(newNames, fc.array(stage, { maxLength: 2 }), { minKeys: 1 }) }),
    );
    fc.assert(
      fc.property(fc.array(stage, { maxLength: 4 }), last, (stages, end) => {
        expect(catchRefusal(() => govern([...stages, end]))).toBeNull();
      }),
    );
  });
});
