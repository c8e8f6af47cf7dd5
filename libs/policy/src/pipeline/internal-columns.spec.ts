import { describe, expect, it } from 'vitest';
import { INTERNAL_FIELDS } from '../model/field-names.js';
import { catchRefusal } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';

const lookup = (members: object) => [{ $lookup: { from: 'Artist', pipeline: [], as: 'x', ...members } }];
const graph = (members: object) => [
  {
    $graphLookup: {
      from: 'A',
      startWith: '$x',
      connectFromField: 'y',
      connectToField: 'z',
      as: 'w',
      ...members,
    },
  },
];

describe('validatePipeline: internal columns', () => {
  const names = [...INTERNAL_FIELDS, '_auth_data_facebook', 'auth_data', 'Session_Token'];
  const positions: readonly [string, (name: string) => unknown][] = [
    ['a $match key', (name) => [{ $match: { [name]: 1 } }]],
    ['a dotted key', (name) => [{ $match: { [`owner.${name}`]: 1, x: 1 } }]],
    ['the root of a dotted key', (name) => [{ $sort: { [`${name}.x`]: 1 } }]],
    ['an output name', (name) => [{ $group: { _id: null, [name]: { $sum: 1 } } }]],
    ['an inclusion', (name) => [{ $project: { [name]: 1 } }]],
    ['a nested inclusion', (name) => [{ $project: { owner: { [name]: 1 } } }]],
    ['a reference', (name) => [{ $group: { _id: `$${name}` } }]],
    ['a reference through a document', (name) => [{ $project: { x: `$owner.${name}` } }]],
    ['a reference below it', (name) => [{ $project: { x: `$${name}.x` } }]],
    ['$$ROOT', (name) => [{ $project: { x: `$$ROOT.${name}` } }]],
    ['$$CURRENT', (name) => [{ $project: { x: `$$CURRENT.${name}` } }]],
    ['a variable', (name) => [{ $project: { x: { $map: { input: '$l', in: `$$this.${name}` } } } }]],
    ['$getField', (name) => [{ $project: { x: { $getField: name } } }]],
    [
      '$getField over a document',
      (name) => [{ $project: { x: { $getField: { field: { $literal: name }, input: '$$ROOT' } } } }],
    ],
    ['$setField', (name) => [{ $project: { x: { $setField: { field: name, input: '$$ROOT', value: 1 } } } }]],
    ['$unsetField', (name) => [{ $project: { x: { $unsetField: { field: name, input: '$$ROOT' } } } }]],
    ['an array element', (name) => [{ $project: { x: [1, `$${name}`] } }]],
    ['a literal', (name) => [{ $project: { x: { $literal: [`$${name}`] } } }]],
    ['$unset', (name) => [{ $unset: ['title', name] }]],
    ['$count', (name) => [{ $count: name }]],
    ['$unwind', (name) => [{ $unwind: `$${name}` }]],
    ['includeArrayIndex', (name) => [{ $unwind: { path: '$x', includeArrayIndex: name } }]],
    ['localField', (name) => lookup({ localField: name, foreignField: 'a' })],
    ['foreignField', (name) => lookup({ localField: 'a', foreignField: `x.${name}` })],
    ['as', (name) => lookup({ as: name })],
    ['let', (name) => lookup({ let: { v: `$${name}` } })],
    ['connectFromField', (name) => graph({ connectFromField: name })],
    ['connectToField', (name) => graph({ connectToField: name })],
    ['depthField', (name) => graph({ depthField: name })],
    ['restrictSearchWithMatch', (name) => graph({ restrictSearchWithMatch: { [name]: 1 } })],
    ['a $facet branch', (name) => [{ $facet: { a: [{ $sortByCount: `$${name}` }] } }]],
    ['a sub-pipeline', (name) => lookup({ pipeline: [{ $match: { $or: [{ [name]: 1 }] } }] })],
    ['a union', (name) => [{ $unionWith: { coll: 'A', pipeline: [{ $project: { x: `$${name}` } }] } }]],
    ['$expr', (name) => [{ $match: { $expr: { $eq: [`$${name}`, 1] } } }]],
    ['sortBy', (name) => [{ $group: { _id: 1, x: { $top: { sortBy: { [name]: 1 }, output: '$a' } } } }]],
  ];

  it.each(positions)('refuses every internal name in %s', (_, build) => {
    for (const name of names) {
      expect([name, catchRefusal(() => validatePipeline(build(name)))?.code]).toEqual([
        name,
        'security_blocked',
      ]);
    }
  });
});
