import { asOperand } from './cell-values.js';
import type { Request } from './asked-service.js';
import { GUESSES, isHolding } from './held-objects.js';
import type { AgentSight } from './sight.js';
import { type ClassName, CLASS_NAMES, type Column, COLUMNS, rowId } from './vocabulary.js';

const call = (name: string, args: object): Request => ({
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Ways to ask about one column that would show its values without the policy. */
export function probes(className: ClassName, column: Column): readonly Request[] {
  const { name } = column;
  if (isHolding(column)) return holdingProbes(className, name);
  const about = { class_name: className };
  const value = asOperand(column, 1, false);
  const stages = (...pipeline: object[]) => call('aggregate', { ...about, pipeline });
  return [
    call('query_class', { ...about, order: name }),
    call('query_class', { ...about, order: `-${name}.objectId` }),
    call('query_class', { ...about, where: { [name]: value } }),
    call('query_class', { ...about, where: { [name]: { $gt: value } } }),
    call('query_class', { ...about, where: { [name]: { $in: [value, null] } } }),
    call('query_class', { ...about, where: { [name]: { $regex: '1' } } }),
    call('query_class', { ...about, where: { $nor: [{ [name]: value }] } }),
    call('query_class', { ...about, keys: [name, `${name}.objectId`], include: [name] }),
    call('query_class', about),
    call('get_object', { ...about, object_id: rowId(className, 1), include: [name] }),
    call('count_objects', { ...about, where: { [name]: { $ne: value } } }),
    call('group_by', { ...about, field: name }),
    call('group_by', { ...about, field: 'objectId', operation: 'max', value_field: name }),
    call('group_by_date', { ...about, field: name, interval: 'day' }),
    call('distinct', { ...about, field: name }),
    call('export_data', { ...about, columns: [name], order: name }),
    call('explain_query', { ...about, where: { [name]: value } }),
    call('atlas_text_search', { ...about, query: 'plain 1 ZEKRET', fields: [name], highlight_field: name }),
    call('atlas_autocomplete', { ...about, query: 'ZEK', field: name }),
    call('atlas_faceted_search', { ...about, facets: { x: { path: name } } }),
    call('semantic_search', { ...about, query: 'plain', vector_filter: { [name]: value }, text_field: name }),
    call('find_similar', { ...about, text: 'plain', where: { [name]: value } }),
    stages({ $sort: { [name]: 1 } }),
    stages({ $group: { _id: `$${name}`, n: { $sum: 1 } } }),
    stages({ $match: { [name]: value } }),
    stages({ $match: { $expr: { $eq: [`$${name}`, value] } } }),
    stages({ $match: { $expr: { $gt: [{ $size: { $objectToArray: '$$ROOT' } }, 9] } } }),
    stages({ $group: { _id: null, all: { $push: '$$ROOT' } } }),
    stages({ $project: { x: { $getField: name } } }),
    stages({ $lookup: { from: className, localField: name, foreignField: name, as: 'x' } }),
    stages({ $graphLookup: graph(className, name) }, { $project: { n: { $size: '$x' } } }),
    stages({ $facet: { x: [{ $sortByCount: `$${name}` }] } }),
  ];
}

/** Ways to compare what stands inside a column with guesses, with other rows and with other columns. */
function holdingProbes(className: ClassName, name: string): readonly Request[] {
  const about = { class_name: className };
  const stages = (...pipeline: object[]) => call('aggregate', { ...about, pipeline });
  const counted = [{ $sort: { objectId: 1 } }, { $project: { n: { $size: '$x' } } }];
  const inner = { className, where: {} };
  const $literal = GUESSES;
  return [
    // Each guess in one of the ways, so that the other questions are asked as well.
    ...GUESSES.flatMap((guess, index) => {
      const ways = [
        call('count_objects', { ...about, where: { [name]: guess } }),
        call('count_objects', { ...about, where: { [`${name}.inner`]: { $in: [guess] } } }),
        stages({ $match: { [name]: { $gt: guess } } }, { $count: 'n' }),
        stages({ $match: { $expr: { $gt: [`$${name}`, { $literal: guess }] } } }, { $count: 'n' }),
        stages(
          { $addFields: { y: { $literal: guess } } },
          { $lookup: { from: className, localField: 'y', foreignField: name, as: 'x' } },
          ...counted,
        ),
        stages(
          { $addFields: { y: { $literal: guess } } },
          { $lookup: { from: className, localField: 'y', foreignField: `${name}.inner`, as: 'x' } },
          ...counted,
        ),
      ];
      return ways[index % ways.length] ?? [];
    }),
    stages(
      {
        $lookup: {
          from: className,
          let: { v: `$${name}` },
          pipeline: [{ $match: { $expr: { $eq: [`$${name}.inner`, '$$v'] } } }],
          as: 'x',
        },
      },
      ...counted,
    ),
    stages({ $group: { _id: `$${name}`, n: { $sum: 1 } } }),
    ...['orcPile', 'orcBag', 'crtPile', 'crtBag'].flatMap((outer) =>
      ['', '.inner', '.1'].map((path) =>
        call('query_class', {
          class_name: outer.startsWith('orc') ? 'Orchard' : 'Crate',
          where: { [outer + path]: { $select: { query: inner, key: name + path } } },
        }),
      ),
    ),
    ...['$objectId', `$${name}`, { $literal }, `$${name}.inner`].flatMap((startWith) =>
      [name, `${name}.inner`, `${name}.inner.objectId`].map((connected) =>
        stages(
          {
            $graphLookup: {
              from: className,
              startWith,
              connectFromField: connected,
              connectToField: connected,
              as: 'x',
            },
          },
          ...counted,
        ),
      ),
    ),
    call('query_class', { ...about, order: name }),
    call('query_class', { ...about, order: `${name}.inner.tone` }),
    call('count_objects', { ...about, where: { [name]: { $regex: 'row[12]' } } }),
    call('count_objects', { ...about, where: { $nor: [{ [`${name}.inner`]: { $exists: true } }] } }),
    call('group_by', { ...about, field: name }),
    call('group_by', { ...about, field: `${name}.inner` }),
    call('distinct', { ...about, field: name }),
    stages({ $sort: { [name]: 1 } }),
    stages({ $sort: { [`${name}.inner`]: 1 } }),
    stages({ $match: { [name]: { $type: 'string' } } }),
    stages({ $match: { [`${name}.inner`]: { $type: 'string' } } }),
    stages({ $sortByCount: `$${name}.inner` }),
    stages({ $group: { _id: null, low: { $min: `$${name}` }, high: { $max: `$${name}.inner` } } }),
    stages(
      {
        $project: {
          x: {
            $setIntersection: [
              { $cond: [{ $isArray: `$${name}` }, `$${name}`, [`$${name}.inner`]] },
              { $literal },
            ],
          },
        },
      },
      ...counted,
    ),
    stages(
      { $facet: { x: [{ $limit: 2 }], y: [{ $skip: 1 }] } },
      { $project: { x: { $cmp: ['$x', '$y'] } } },
    ),
    stages({ $redact: { $cond: [{ $in: [`$${name}.inner`, { $literal }] }, '$$KEEP', '$$PRUNE'] } }),
    stages({ $unwind: `$${name}` }, { $group: { _id: `$${name}`, n: { $sum: 1 } } }),
  ];
}

const graph = (className: ClassName, name: string) => ({
  from: className,
  startWith: '$objectId',
  connectFromField: name,
  connectToField: name,
  as: 'x',
});

/** What of the classes that an agent may read it may not see, on some row or in some place at least. */
export function guardedColumns(sight: AgentSight): (readonly [ClassName, Column])[] {
  return CLASS_NAMES.filter((name) => sight.permits(name, 'find')).flatMap((name) =>
    COLUMNS[name]
      .filter((column) => !sight.mayAsk(name, column.name) || isHolding(column))
      .map((column) => [name, column] as const),
  );
}
