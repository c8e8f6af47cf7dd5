import { asOperand } from './cell-values.js';
import type { Request } from './asked-service.js';
import type { AgentSight } from './sight.js';
import { type ClassName, CLASS_NAMES, type Column, COLUMNS, rowId } from './vocabulary.js';

const call = (name: string, args: object): Request => ({
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Ways to ask about one column that would tell its values if nobody stood in between. */
export function probes(className: ClassName, column: Column): readonly Request[] {
  const { name } = column;
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

const graph = (className: ClassName, name: string) => ({
  from: className,
  startWith: '$objectId',
  connectFromField: name,
  connectToField: name,
  as: 'x',
});

/** What of the classes that an agent may read it may not see, on some row at least. */
export function guardedColumns(sight: AgentSight): (readonly [ClassName, Column])[] {
  return CLASS_NAMES.filter((name) => sight.permits(name, 'find')).flatMap((name) =>
    COLUMNS[name]
      .filter((column) => !sight.mayAsk(name, column.name))
      .map((column) => [name, column] as const),
  );
}
