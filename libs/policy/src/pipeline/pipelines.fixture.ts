import fc from 'fast-check';

/** Random pipelines over Song that try, among ordinary stages, to read everything that must stay hidden. */

const OWN = ['title', 'genre', 'play_count', 'PlayCount', 'meta', 'tags', 'objectId', 'createdAt'];
const MADE = ['x', 'y', 'n', '_id', 'count', 'joined'];
/** Outside the allowlist of Song and of Artist. */
export const HIDDEN = ['royalty', 'fee', 'orgId', 'org_id'];
/** Internal columns of Parse. */
const INTERNAL = ['_hashed_password', '_rperm', 'authData', '_auth_data_x', 'session_token'];

const own = fc.constantFrom(...OWN);
const made = fc.constantFrom(...MADE);
export const newNames = fc.constantFrom('x', 'y', 'n');
/** Also the names of hidden columns, which a caller may use for computed values. */
export const anyNames = fc.oneof(
  { weight: 4, arbitrary: newNames },
  { weight: 1, arbitrary: fc.constantFrom('royalty', 'fee.x') },
);

const name = fc.oneof(
  { weight: 10, arbitrary: own },
  { weight: 5, arbitrary: made },
  { weight: 1, arbitrary: fc.constantFrom(...HIDDEN) },
  { weight: 1, arbitrary: fc.constantFrom(...INTERNAL) },
);
const path = fc.oneof(
  { weight: 6, arbitrary: name },
  { weight: 1, arbitrary: fc.tuple(name, name).map((pair) => pair.join('.')) },
);
const reference = fc.oneof(
  { weight: 6, arbitrary: path.map((to) => `$${to}`) },
  { weight: 2, arbitrary: fc.constantFrom('$$ROOT', '$$CURRENT') },
  { weight: 1, arbitrary: path.map((to) => `$$ROOT.${to}`) },
  { weight: 1, arbitrary: path.map((to) => `$$v.${to}`) },
  { weight: 1, arbitrary: fc.constantFrom('$$v', '$$this') },
);
const scalar = fc.constantFrom<unknown>(0, 1, 'a', 'rock', true, null);

const { expression } = fc.letrec<{ expression: unknown }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 5, arbitrary: reference },
    { weight: 2, arbitrary: scalar },
    ...[
      fc.array(tie('expression'), { maxLength: 2 }),
      fc.record({ a: tie('expression'), b: tie('expression') }),
      fc.record({ $literal: tie('expression') }),
      fc.record({ $objectToArray: tie('expression') }),
      fc.record({ $type: tie('expression') }),
      fc.record({ $isArray: fc.tuple(tie('expression')) }),
      fc.record({ $mergeObjects: fc.array(tie('expression'), { maxLength: 2 }) }),
      fc.record({ $ifNull: fc.tuple(tie('expression'), tie('expression')) }),
      fc.record({ $eq: fc.tuple(tie('expression'), tie('expression')) }),
      fc.record({ $gt: fc.tuple(tie('expression'), tie('expression')) }),
      fc.record({ $cond: fc.tuple(tie('expression'), tie('expression'), tie('expression')) }),
      fc.record({ $getField: fc.oneof(name, fc.record({ field: name, input: tie('expression') })) }),
      fc.record({
        $setField: fc.record({ field: newNames, input: tie('expression'), value: tie('expression') }),
      }),
      fc.record({ $unsetField: fc.record({ field: name, input: tie('expression') }) }),
      fc.record({ $let: fc.record({ vars: fc.record({ v: tie('expression') }), in: tie('expression') }) }),
      fc.record({
        $map: fc.record({
          input: tie('expression'),
          as: fc.constantFrom('v', 'this'),
          in: tie('expression'),
        }),
      }),
      fc.record({
        $filter: fc.record({ input: tie('expression'), as: fc.constant('v'), cond: tie('expression') }),
      }),
      fc.record({
        $reduce: fc.record({
          input: tie('expression'),
          initialValue: tie('expression'),
          in: tie('expression'),
        }),
      }),
    ].map((arbitrary) => ({ weight: 1, arbitrary })),
  ),
}));

const { match } = fc.letrec<{ match: unknown }>((tie) => ({
  match: fc.oneof(
    { maxDepth: 2 },
    fc.dictionary(
      path,
      fc.oneof(
        scalar,
        fc.record({ $exists: fc.boolean() }),
        fc.record({ $ne: scalar }),
        fc.record({ $gt: scalar }),
      ),
      {
        maxKeys: 2,
      },
    ),
    fc.record({ $or: fc.array(tie('match'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ $nor: fc.array(tie('match'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ $expr: expression }),
  ),
}));

const accumulator = fc.oneof(
  fc.record({ $sum: expression }),
  fc.record({ $push: expression }),
  fc.record({ $max: expression }),
  fc.record({ $first: expression }),
);
const direction = fc.constantFrom(1, -1);
type Stages = { stage: Record<string, unknown>; stages: Record<string, unknown>[] };
/**
 * @param classes what may be joined
 * @param outputs names for computed values
 */
export function pipelines(classes: readonly string[], outputs: fc.Arbitrary<string>) {
  const joined = fc.constantFrom(...classes);
  return fc.letrec<Stages>((tie) => ({
    stages: fc.array(tie('stage'), { minLength: 1, maxLength: 4 }),
    stage: fc.oneof(
      { maxDepth: 2 },
      fc.record({ $match: match }),
      fc.record({ $limit: fc.nat({ max: 5 }).map((n) => n + 1) }),
      fc.record({ $sort: fc.dictionary(path, direction, { minKeys: 1, maxKeys: 2 }) }),
      fc.record({
        $project: fc
          .tuple(
            fc.dictionary(path, fc.constantFrom<unknown>(1, true, 2), { maxKeys: 2 }),
            fc.dictionary(outputs, expression, { minKeys: 1, maxKeys: 2 }),
          )
          .map(([included, computed]) => ({ ...included, ...computed })),
      }),
      fc.record({ $project: fc.dictionary(own, fc.constant(0), { minKeys: 1, maxKeys: 2 }) }),
      fc.record({ $addFields: fc.dictionary(outputs, expression, { minKeys: 1, maxKeys: 2 }) }),
      fc.record({ $group: fc.tuple(expression, accumulator).map(([_id, n]) => ({ _id, n })) }),
      fc.record({ $sortByCount: expression }),
      fc.record({ $count: outputs }),
      fc.record({ $unwind: path.map((to) => `$${to}`) }),
      fc.record({
        $replaceWith: fc.oneof(
          reference,
          expression,
          fc.record({ x: expression }),
          fc.record({ $mergeObjects: fc.tuple(reference, fc.record({ x: expression })) }),
        ),
      }),
      fc.record({ $unset: own }),
      fc.record({
        $redact: fc.record({ $cond: fc.tuple(expression, fc.constant('$$KEEP'), fc.constant('$$PRUNE')) }),
      }),
      fc.record({ $facet: fc.record({ x: tie('stages') }) }),
      fc.record({ $unionWith: fc.oneof(joined, fc.record({ coll: joined, pipeline: tie('stages') })) }),
      fc.record({
        $lookup: fc.record({
          from: joined,
          let: fc.record({ v: expression }),
          pipeline: tie('stages'),
          as: fc.constant('joined'),
        }),
      }),
      fc.record({
        $lookup: fc.record({ from: joined, localField: path, foreignField: path, as: fc.constant('joined') }),
      }),
      fc.record({
        $graphLookup: fc.record({
          from: joined,
          startWith: reference,
          connectFromField: path,
          connectToField: path,
          as: fc.constant('joined'),
        }),
      }),
    ),
  })).stages;
}
