import { Binary, BSONRegExp, Decimal128, Double, EJSON, Long, ObjectId, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Document } from '../bson/document.js';
import { MongoError } from '../errors.js';
import type { QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import { encodeDocument } from '../wire/encode.js';
import { compileExpression } from './expression.js';

// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
import fc from 'fast-check';

const ctx: QueryContext = {
  tick: () => undefined,
  now: new Date('2024-05-06T07:08:09Z'),
  clusterTime: new Timestamp({ t: 9, i: 2 }),
  variables: { outer: 7 },
};
const evaluate = (expression: unknown, doc: Document = {}): unknown =>
  compileExpression(expression, ctx).evaluate(doc);
const exact = (value: unknown): string =>
  value === undefined ? 'missing' : EJSON.stringify(value, { relaxed: false });

const dec = (text: string): Decimal128 => Decimal128.fromString(text);
const bytes = (hex: string, subtype = 0): Binary => new Binary(Buffer.from(hex, 'hex'), subtype);
const long = (value: number): Long => Long.fromNumber(value);
const id = new ObjectId('64b000000000000000000001');
const at = (text: string): Date => new Date(text);
const spring = at('2024-03-31T23:30:00Z');
const missing = undefined;

/** Title, expression, MongoDB's answer, and the document it is asked of. */
type Row = [title: string, expression: unknown, answer: unknown, doc?: Document];

const values: Row[] = [
  ['a path passes over arrays in arrays', '$a.b', [2], { a: [[{ b: 1 }], { b: 2 }] }],
  ['a position is no part of a path', '$a.0', [], { a: [[1], [2]] }],
  [
    'an operator gives CURRENT another value',
    { $map: { input: '$a', as: 'CURRENT', in: '$b' } },
    [1],
    { a: [{ b: 1 }] },
  ],
  ['the smallest decimal is true', { $cond: [dec('1E-6176'), 'yes', 'no'] }, 'yes'],
  [
    '$getField reads a name from the document',
    { $getField: { field: '$n', input: { x: 1 } } },
    1,
    { n: 'x' },
  ],
  [
    '$setField takes a quoted name',
    { $setField: { field: { $const: '$x' }, input: {}, value: 1 } },
    { $x: 1 },
  ],
  [
    'binaries of the old subtype are longer by their length',
    { $lt: [bytes('ab', 0x80), bytes('ab', 2)] },
    true,
  ],
  ['a path maps over arrays', '$a.b', [1, 2], { a: [{ b: 1 }, {}, { b: 2 }, 5] }],
  ['$toUpper writes a double with six digits', { $toUpper: 123456.789 }, '123457'],
  ['$toLower writes a million with an exponent', { $toLower: 1_000_000.5 }, '1e+06'],
  ['$toLower of a small double', { $toLower: 0.00009 }, '9e-05'],
  ['$toLower of a timestamp', { $toLower: new Timestamp({ t: 1704067200, i: 1 }) }, 'jan  1 00:00:00:1'],
  ['$toString keeps the digits of a double', { $toString: 1e15 + 0.5 }, '1000000000000000.5'],
  ['$toString writes an exponent from 1e16 on', { $toString: 1e16 }, '1e+16'],
  ['$trunc looks at all digits of a double', { $trunc: [0.29, 2] }, 0.28],
  ['$round looks at all digits of a double', { $round: [1.005, 2] }, new Double(1)],
  ['$pow of 1 is 1 for every power', { $pow: [1, Infinity] }, new Double(1)],
  ['$round keeps the sign of what becomes nothing', { $round: -0.5 }, -0],
  [
    '$subtract rounds what is taken from a date',
    { $subtract: [at('2024-01-01T00:00:00.003Z'), 2.5] },
    at('2024-01-01T00:00:00Z'),
  ],
  ['$pow of -1 stays whole', { $pow: [-1, -3] }, -1],
  ['$year of an ObjectId is signed', { $year: new ObjectId('ffffffff0000000000000000') }, 1969],
  [
    '%Z is in minutes',
    { $dateToString: { date: at('2024-01-01T00:00:00Z'), format: '%Z', timezone: '-05:00' } },
    '-300',
  ],
  [
    '$dateTrunc by a week that begins nowhere',
    { $dateTrunc: { date: spring, unit: 'week', startOfWeek: null } },
    null,
  ],
  ['\\s is no hard space', { $regexMatch: { input: '\u00a0', regex: '\\s' } }, false],
  ['a number in a path is no position', '$a.0', [], { a: [7] }],
  ['$literal keeps a dollar', { $literal: '$a' }, '$a'],
  ['an object is built from expressions, without missing fields', { x: '$a', y: '$b' }, { x: 1 }, { a: 1 }],
  ['an array keeps a place for the missing', ['$a', '$b'], [1, null], { a: 1 }],
  ['$$ROOT is the document', '$$ROOT.a', 1, { a: 1 }],
  ['$$NOW is the time of the operation', '$$NOW', ctx.now],
  ['$$CLUSTER_TIME is the time of the set', '$$CLUSTER_TIME', ctx.clusterTime],
  [
    'a date has no other spaces than those of ASCII',
    { $convert: { input: '\u20002024-06-15', to: 'date', onError: 'none' } },
    'none',
  ],
  [
    'a text is not longer than a document',
    {
      $convert: {
        input: { $literal: new Binary(Buffer.alloc(8 * 1024 * 1024)) },
        to: 'string',
        format: 'hex',
        onError: 'none',
      },
    },
    'none',
  ],
  ['$$REMOVE is missing', '$$REMOVE', missing],
  ['a variable of the operation', '$$outer', 7],
  ['$eq tells missing from null', { $eq: ['$x', null] }, false],
  ['$lt puts missing before null', { $lt: ['$x', null] }, true],
  ['$gt compares across types', { $gt: ['a', 1] }, true],
  [
    'arrays compare element by element',
    {
      $lt: [
        [2, 1],
        [1, 3],
      ],
    },
    false,
  ],
  ['$cmp', { $cmp: [2, 1] }, 1],
  ['$and stops at the first false', { $and: [false, { $divide: [1, 0] }] }, false],
  ['$or stops at the first true', { $or: [true, { $divide: [1, 0] }] }, true],
  ['$or evaluates nothing in front of a constant that decides', { $or: [{ $divide: [1, 0] }, true] }, true],
  ['$not of null', { $not: [null] }, true],
  ['$cond with three parts', { $cond: [0, 1, 2] }, 2],
  ['an empty string is true', { $cond: ['', 1, 2] }, 1],
  ['$cond by names', { $cond: { if: true, then: 1, else: 2 } }, 1],
  ['$ifNull takes several', { $ifNull: ['$x', '$y', 7] }, 7],
  [
    '$switch',
    {
      $switch: {
        branches: [
          { case: false, then: 0 },
          { case: true, then: 1 },
        ],
      },
    },
    1,
  ],
  ['$let', { $let: { vars: { a: 1, b: 2 }, in: { $add: ['$$a', '$$b'] } } }, 3],
  [
    '$let defines its variables side by side',
    { $let: { vars: { a: 1 }, in: { $let: { vars: { a: 2, b: '$$a' }, in: '$$b' } } } },
    1,
  ],
  ['$getField', { $getField: 'q' }, 9, { q: 9 }],
  ['$getField of a name with a dollar', { $getField: { $literal: '$q' } }, 9, { $q: 9 }],
  ['$setField', { $setField: { field: 'a', input: '$$ROOT', value: 2 } }, { a: 2 }, { a: 1 }],
  ['$unsetField', { $unsetField: { field: 'a', input: '$$ROOT' } }, { b: 1 }, { a: 1, b: 1 }],
  ['$mergeObjects ignores null', { $mergeObjects: [{ a: 1 }, null, { b: 2 }] }, { a: 1, b: 2 }],
  ['$objectToArray', { $objectToArray: { a: 1 } }, [{ k: 'a', v: 1 }]],
  ['$arrayToObject of pairs', { $arrayToObject: [[['a', 1]]] }, { a: 1 }],
  ['$arrayToObject of entries', { $arrayToObject: '$l' }, { a: 1 }, { l: [{ k: 'a', v: 1 }] }],
  ['$bsonSize', { $bsonSize: '$$ROOT' }, 12, { q: 9 }],
];

const numbers: Row[] = [
  ['$add of long and int', { $add: [long(5), 1] }, long(6)],
  [
    '$add of a date and milliseconds',
    { $add: [at('2024-01-01T00:00:00Z'), 1000] },
    at('2024-01-01T00:00:01Z'),
  ],
  ['$add with null', { $add: [1, null] }, null],
  [
    '$subtract of dates is a long',
    { $subtract: [at('2024-01-02T00:00:00Z'), at('2024-01-01T00:00:00Z')] },
    long(86400000),
  ],
  ['$multiply of decimal and int', { $multiply: [dec('1.1'), 2] }, dec('2.2')],
  ['$divide gives a double', { $divide: [4, 2] }, new Double(2)],
  ['$mod', { $mod: [7, 3] }, 1],
  [
    '$pow takes the largest decimal for infinite',
    { $pow: [Decimal128.fromString(`${'9'.repeat(34)}E+6111`), 1] },
    Decimal128.fromString('Infinity'),
  ],
  ['$pow of ints', { $pow: [2, 10] }, 1024],
  ['$pow past 32 bits', { $pow: [2, 40] }, long(2 ** 40)],
  ['$pow with a negative exponent', { $pow: [2, -1] }, 0.5],
  ['$sqrt', { $sqrt: 16 }, new Double(4)],
  ['$abs of a decimal', { $abs: dec('-1.5') }, dec('1.5')],
  ['$ceil', { $ceil: 1.2 }, new Double(2)],
  ['$floor of a decimal', { $floor: dec('-1.2') }, dec('-2')],
  ['$round is half to even', { $round: [2.5] }, new Double(2)],
  ['$trunc', { $trunc: [-1.7] }, new Double(-1)],
  ['$log', { $log: [100, 10] }, new Double(2)],
  ['$exp', { $exp: 0 }, new Double(1)],
  ['$sin', { $sin: 0 }, new Double(0)],
  ['$degreesToRadians', { $degreesToRadians: 180 }, Math.PI],
  ['$bitAnd', { $bitAnd: [12, 10] }, 8],
  ['$bitNot', { $bitNot: 5 }, -6],
  ['$sum over an array', { $sum: '$a' }, 6, { a: [1, 2, 3, 'x'] }],
  ['$sum of arguments ignores an array among them', { $sum: [1, [2], 3] }, 4],
  ['$avg', { $avg: [1, 2] }, 1.5],
  ['$avg takes 64-bit numbers for doubles', { $avg: [Long.MAX_VALUE, Long.MIN_VALUE] }, new Double(0)],
  ['$max over an array', { $max: '$a' }, 'x', { a: [1, 'x', null] }],
  ['$stdDevPop', { $stdDevPop: [1, 3] }, new Double(1)],
  ['$median', { $median: { input: [3, 1, 2], method: 'approximate' } }, new Double(2)],
  ['$rand is a double', { $type: { $rand: {} } }, 'double'],
];

const conversions: Row[] = [
  ['$convert lays a number out in bytes', { $convert: { input: 258, to: 'binData' } }, bytes('02010000')],
  [
    '$convert lays it out in another order, with a subtype',
    { $convert: { input: long(258), to: { type: 'binData', subtype: 128 }, byteOrder: 'big' } },
    bytes('0000000000000102', 128),
  ],
  ['$convert reads a short number', { $convert: { input: bytes('feff'), to: 'long' } }, long(-2)],
  ['$convert reads a float', { $convert: { input: bytes('0000c03f'), to: 'double' } }, 1.5],
  [
    '$convert reads a text of bytes',
    { $convert: { input: 'a-_0', to: 'binData', format: 'base64url' } },
    bytes('6beff4'),
  ],
  [
    '$convert writes bytes in capitals',
    { $convert: { input: bytes('0aff'), to: 'string', format: 'hex' } },
    '0AFF',
  ],
  [
    '$toUUID',
    { $toUUID: '01020304-0506-0708-090a-0b0c0d0e0f10' },
    bytes('0102030405060708090a0b0c0d0e0f10', 4),
  ],
  [
    '$convert onError for a year of five digits',
    { $convert: { input: { $toDate: long(253402300800000) }, to: 'string', onError: 'far' } },
    'far',
  ],
  ['$toDecimal of zero has no places', { $toDecimal: new Double(0) }, dec('0')],
  ['$toDecimal keeps the sign of zero', { $toDecimal: new Double(-0) }, dec('-0')],
  ['$toDecimal of a point alone on one side', { $toDecimal: '.50' }, dec('0.50')],
  ['$type objectId', { $type: '$a' }, 'objectId', { a: id }],
  ['$type of a missing field', { $type: '$a' }, 'missing'],
  [
    '$type tells int, long, double and decimal apart',
    [{ $type: 1 }, { $type: long(1) }, { $type: new Double(1) }, { $type: dec('1') }],
    ['int', 'long', 'double', 'decimal'],
  ],
  ['$toObjectId', { $toObjectId: '64b000000000000000000001' }, id],
  ['$toString of an ObjectId', { $toString: id }, id.toHexString()],
  ['$toString of a double', { $toString: 2.5 }, '2.5'],
  ['$toString of a date', { $toString: at('2024-01-01T00:00:00Z') }, '2024-01-01T00:00:00.000Z'],
  ['$toDate of an ObjectId', { $toDate: id }, id.getTimestamp()],
  ['$toDate of a text between wide spaces', { $toDate: '\u00a01970-01-01\u00a0' }, new Date(0)],
  ['$toDate of a long', { $toDate: long(5) }, new Date(5)],
  ['$toDecimal keeps the scale', { $toDecimal: '1.10' }, dec('1.10')],
  [
    '$toDecimal cuts a text behind 34 digits',
    { $toDecimal: `0.${'9'.repeat(36)}` },
    dec(`0.${'9'.repeat(34)}`),
  ],
  ['$toDecimal cuts below zero as well', { $toDecimal: `-${'6'.repeat(35)}` }, dec(`-${'6'.repeat(34)}E1`)],
  ['$toInt', { $toInt: '12' }, 12],
  ['$toInt truncates', { $toInt: 2.9 }, 2],
  ['$toLong of a decimal', { $toLong: dec('1234567890123.9') }, Long.fromString('1234567890123')],
  ['$toDouble', { $toDouble: '1e3' }, new Double(1000)],
  ['$toBool of zero', { $toBool: 0 }, false],
  ['$toBool of an empty string', { $toBool: '' }, true],
  ['$convert', { $convert: { input: '64b000000000000000000001', to: 'objectId' } }, id],
  ['$convert onError', { $convert: { input: 'x', to: 'int', onError: -1 } }, -1],
  ['$convert onNull', { $convert: { input: null, to: 'int', onNull: 0 } }, 0],
  ['$isNumber', { $isNumber: 1 }, true],
  ['$tsSecond', { $tsSecond: new Timestamp({ t: 10, i: 1 }) }, long(10)],
];

const lists: Row[] = [
  [
    '$sortArray takes an array at a path for what it is',
    { $sortArray: { input: '$l', sortBy: { a: 1 } } },
    [{ a: [2] }, { a: [3, 1] }],
    { l: [{ a: [3, 1] }, { a: [2] }] },
  ],
  [
    '$sortArray by a field leaves what has none as it was',
    { $sortArray: { input: [2, 'a', 1], sortBy: { x: 1 } } },
    [2, 'a', 1],
  ],
  ['$range from the smallest number', { $range: [-(2 ** 31), -(2 ** 31) + 1] }, [-(2 ** 31)]],
  ['$map', { $map: { input: [1, 2], in: { $add: ['$$this', 1] } } }, [2, 3]],
  ['$map under another name', { $map: { input: [1], as: 'n', in: '$$n' } }, [1]],
  [
    '$map within $map',
    {
      $map: { input: [1, 2], as: 'x', in: { $map: { input: [10], as: 'y', in: { $add: ['$$x', '$$y'] } } } },
    },
    [[11], [12]],
  ],
  ['$filter with a limit', { $filter: { input: [1, 2, 3], cond: { $gt: ['$$this', 1] }, limit: 1 } }, [2]],
  ['$reduce', { $reduce: { input: [1, 2], initialValue: 0, in: { $add: ['$$value', '$$this'] } } }, 3],
  [
    '$reduce within $reduce',
    {
      $reduce: {
        input: [[1], [2, 3]],
        initialValue: 0,
        in: {
          $add: [
            '$$value',
            { $reduce: { input: '$$this', initialValue: 0, in: { $add: ['$$value', '$$this'] } } },
          ],
        },
      },
    },
    6,
  ],
  ['$slice from the end', { $slice: [[1, 2, 3], -2] }, [2, 3]],
  ['$slice by position and count', { $slice: [[1, 2, 3], 1, 1] }, [2]],
  ['$arrayElemAt from the end', { $arrayElemAt: [[1, 2], -1] }, 2],
  ['$arrayElemAt past the end', { $arrayElemAt: [[1], 5] }, missing],
  ['$in', { $in: [2, [1, 2]] }, true],
  ['$in across numeric types', { $in: [long(2), [1, 2]] }, true],
  ['$size', { $size: '$a' }, 2, { a: [1, 2] }],
  ['$concatArrays', { $concatArrays: [[1], [2]] }, [1, 2]],
  ['$zip', { $zip: { inputs: [[1], [2]] } }, [[1, 2]]],
  [
    '$zip to the longest',
    { $zip: { inputs: [[1, 2], [3]], useLongestLength: true, defaults: [0, 9] } },
    [
      [1, 3],
      [2, 9],
    ],
  ],
  ['$range', { $range: [0, 3] }, [0, 1, 2]],
  ['$range downwards', { $range: [3, 0, -2] }, [3, 1]],
  ['$reverseArray', { $reverseArray: [[1, 2]] }, [2, 1]],
  ['$indexOfArray', { $indexOfArray: [['a', 'b'], 'b'] }, 1],
  ['$sortArray', { $sortArray: { input: [2, 1], sortBy: 1 } }, [1, 2]],
  [
    '$sortArray of documents',
    { $sortArray: { input: [{ a: 2 }, { a: 1 }], sortBy: { a: 1 } } },
    [{ a: 1 }, { a: 2 }],
  ],
  ['$first and $last', [{ $first: [[1, 2]] }, { $last: [[1, 2]] }], [1, 2]],
  ['$firstN', { $firstN: { input: [1, 2, 3], n: 2 } }, [1, 2]],
  ['$maxN', { $maxN: { input: [1, 3, 2], n: 2 } }, [3, 2]],
  ['$isArray', { $isArray: [[1]] }, true],
  ['$setUnion', { $setUnion: [[2, 1], [2]] }, [1, 2]],
  [
    '$setIntersection',
    {
      $setIntersection: [
        [1, 2],
        [2, 3],
      ],
    },
    [2],
  ],
  ['$setDifference', { $setDifference: [[1, 2], [2]] }, [1]],
  [
    '$setEquals ignores order and number',
    {
      $setEquals: [
        [1, 2, 1],
        [2, 1],
      ],
    },
    true,
  ],
  ['$setIsSubset', { $setIsSubset: [[1], [1, 2]] }, true],
  ['$anyElementTrue', { $anyElementTrue: [[0, 1]] }, true],
];

const strings: Row[] = [
  ['$indexOfCP finds nothing at the end', { $indexOfCP: ['hello', '', 5] }, -1],
  ['$indexOfCP finds what begins within its range', { $indexOfCP: ['hello', 'llo', 0, 3] }, 2],
  ['$substrBytes rounds a decimal', { $substrBytes: ['hello', dec('1.5'), 3] }, 'llo'],
  ['$substrBytes cuts a double', { $substrBytes: ['hello', 1.5, 3] }, 'ell'],
  [
    '$replaceAll of nothing keeps an emoji whole',
    { $replaceAll: { input: '😀', find: '', replacement: 'x' } },
    'x😀x',
  ],
  [
    '$regexFindAll of nothing stops before the end',
    { $size: { $regexFindAll: { input: 'ab', regex: '' } } },
    2,
  ],
  ['$concat', { $concat: ['a', 'b'] }, 'ab'],
  ['$concat with null', { $concat: ['a', null] }, null],
  ['$toUpper touches ASCII only', { $toUpper: 'straße é' }, 'STRAßE é'],
  ['$strLenCP counts code points', { $strLenCP: 'é😀' }, 2],
  ['$strLenBytes', { $strLenBytes: 'é' }, 2],
  ['$binarySize', { $binarySize: new Binary(Buffer.from('abc')) }, 3],
  ['$indexOfCP', { $indexOfCP: ['abc', 'c'] }, 2],
  ['$indexOfBytes', { $indexOfBytes: ['éa', 'a'] }, 2],
  ['$split', { $split: ['a-b', '-'] }, ['a', 'b']],
  ['$substr', { $substr: ['abc', 0, 2] }, 'ab'],
  ['$substr with length -1 takes the rest', { $substr: ['abc', 1, -1] }, 'bc'],
  ['$substrCP', { $substrCP: ['é😀x', 1, 1] }, '😀'],
  ['$trim', { $trim: { input: ' a ' } }, 'a'],
  ['$ltrim of characters', { $ltrim: { input: 'xxa', chars: 'x' } }, 'a'],
  ['$replaceOne', { $replaceOne: { input: 'a.a', find: 'a', replacement: { $literal: '$&' } } }, '$&.a'],
  ['$replaceAll', { $replaceAll: { input: 'a.b.c', find: '.', replacement: '-' } }, 'a-b-c'],
  ['$strcasecmp', { $strcasecmp: ['a', 'B'] }, -1],
  [
    '$regexMatch with options as a string',
    { $regexMatch: { input: 'ABC', regex: 'abc', options: 'i' } },
    true,
  ],
  ['$regexMatch with a value', { $regexMatch: { input: 'abc', regex: new BSONRegExp('^ab') } }, true],
  [
    '$regexFind counts code points',
    { $regexFind: { input: '😀ab', regex: '(b)' } },
    { match: 'b', idx: 2, captures: ['b'] },
  ],
  [
    '$regexFindAll',
    { $regexFindAll: { input: 'aba', regex: 'a' } },
    [
      { match: 'a', idx: 0, captures: [] },
      { match: 'a', idx: 2, captures: [] },
    ],
  ],
];

const berlin = 'Europe/Berlin';
const dates: Row[] = [
  [
    '$dateFromString of a month by its name',
    { $dateFromString: { dateString: 'oct 20 2020' } },
    at('2020-10-20'),
  ],
  [
    '$dateFromString of a day before its month',
    { $dateFromString: { dateString: '4th July 2017, 11:05pm' } },
    at('2017-07-04T23:05Z'),
  ],
  [
    '$dateFromString of parts in another order',
    { $dateFromString: { dateString: 'Wed Jan 31 12:05:28 +03:30 1996' } },
    at('1996-01-31T08:35:28Z'),
  ],
  [
    '$dateFromString without separators',
    { $dateFromString: { dateString: '20170704T110501.5Z' } },
    at('2017-07-04T11:05:01.500Z'),
  ],
  [
    '$dateFromString counts days of the year from zero',
    { $dateFromString: { dateString: '2024 0', format: '%Y %j' } },
    at('2024-01-01'),
  ],
  ['$hour in a zone', { $hour: { date: '$d', timezone: berlin } }, 1],
  ['$hour in UTC', { $hour: { date: '$d', timezone: 'UTC' } }, 23],
  ['$hour in GMT', { $hour: { date: '$d', timezone: 'GMT' } }, 23],
  [
    '$hour in a zone of three parts',
    { $hour: { date: '$d', timezone: 'America/Argentina/Buenos_Aires' } },
    20,
  ],
  ['$hour at an offset', { $hour: { date: '$d', timezone: '+05:30' } }, 5],
  [
    'an offset of half hours west',
    { $dateToString: { date: '$d', timezone: '-03:30', format: '%H:%M' } },
    '20:00',
  ],
  [
    'an offset of less than an hour west',
    { $dateToString: { date: '$d', timezone: '-00:30', format: '%H:%M' } },
    '23:00',
  ],
  [
    '$dateToString in a zone',
    { $dateToString: { date: '$d', timezone: 'America/New_York', format: '%Y-%m-%d' } },
    '2024-03-31',
  ],
  ['$dateToString by default', { $dateToString: { date: '$d' } }, '2024-03-31T23:30:00.000Z'],
  ['$dateToString of null', { $dateToString: { date: null, onNull: '-' } }, '-'],
  [
    '$dateTrunc to a day in a zone',
    { $dateTrunc: { date: '$d', unit: 'day', timezone: berlin } },
    at('2024-03-31T22:00:00Z'),
  ],
  [
    '$dateTrunc to a week from Monday',
    { $dateTrunc: { date: '$d', unit: 'week', startOfWeek: 'monday' } },
    at('2024-03-25T00:00:00Z'),
  ],
  [
    '$dateTrunc of constants looks at the start of a week for weeks alone',
    { $dateTrunc: { date: at('2024-03-31T01:00:00Z'), unit: 'day', startOfWeek: null } },
    at('2024-03-31T00:00:00Z'),
  ],
  [
    '$dateTrunc of a field is null where the start of a week is',
    { $dateTrunc: { date: '$d', unit: 'day', startOfWeek: null } },
    null,
  ],
  ['$dateTrunc to a month', { $dateTrunc: { date: '$d', unit: 'month' } }, at('2024-03-01T00:00:00Z')],
  ['$dateTrunc to a quarter', { $dateTrunc: { date: '$d', unit: 'quarter' } }, at('2024-01-01T00:00:00Z')],
  [
    '$dateTrunc to bins',
    { $dateTrunc: { date: '$d', unit: 'minute', binSize: 20 } },
    at('2024-03-31T23:20:00Z'),
  ],
  [
    '$dateAdd keeps within the month',
    { $dateAdd: { startDate: at('2024-01-31T00:00:00Z'), unit: 'month', amount: 1 } },
    at('2024-02-29T00:00:00Z'),
  ],
  [
    '$dateAdd of a day over a clock change',
    { $dateAdd: { startDate: at('2024-03-30T12:00:00Z'), unit: 'day', amount: 1, timezone: berlin } },
    at('2024-03-31T11:00:00Z'),
  ],
  [
    '$dateSubtract',
    { $dateSubtract: { startDate: at('2024-03-01T00:00:00Z'), unit: 'day', amount: 1 } },
    at('2024-02-29T00:00:00Z'),
  ],
  [
    '$dateDiff counts boundaries',
    { $dateDiff: { startDate: at('2024-01-31'), endDate: at('2024-03-01'), unit: 'month' } },
    long(2),
  ],
  [
    '$dateDiff of weeks begins on Sunday',
    { $dateDiff: { startDate: at('2024-03-30'), endDate: at('2024-03-31'), unit: 'week' } },
    long(1),
  ],
  ['the ISO year and week', { $dateToString: { date: at('2021-01-01'), format: '%G-%V' } }, '2020-53'],
  ['$isoWeekYear', { $isoWeekYear: at('2021-01-01') }, long(2020)],
  ['$week counts Sundays', { $week: at('2024-01-07') }, 1],
  ['$dayOfYear', { $dayOfYear: at('2024-12-31') }, 366],
  ['$dayOfWeek', { $dayOfWeek: at('2024-01-07') }, 1],
  ['$year of an ObjectId', { $year: '$id' }, id.getTimestamp().getUTCFullYear()],
  ['$year of null', { $year: null }, null],
  ['$dateFromString', { $dateFromString: { dateString: '2024-03-31' } }, at('2024-03-31')],
  [
    '$dateFromString with a zone',
    { $dateFromString: { dateString: '2024-03-31T12:00:00', timezone: berlin } },
    at('2024-03-31T10:00:00Z'),
  ],
  [
    '$dateFromString by format',
    { $dateFromString: { dateString: '31.03.2024', format: '%d.%m.%Y' } },
    at('2024-03-31'),
  ],
  ['$dateFromString onError', { $dateFromString: { dateString: 'soon', onError: null } }, null],
  ['$dateFromParts', { $dateFromParts: { year: 2024, month: 3 } }, at('2024-03-01')],
  ['$dateFromParts carries over', { $dateFromParts: { year: 2024, month: 14 } }, at('2025-02-01')],
  [
    '$dateFromParts of an ISO week',
    { $dateFromParts: { isoWeekYear: 2020, isoWeek: 53, isoDayOfWeek: 5 } },
    at('2021-01-01'),
  ],
  [
    '$dateToParts',
    { $dateToParts: { date: at('2024-03-31T01:02:03.004Z') } },
    { year: 2024, month: 3, day: 31, hour: 1, minute: 2, second: 3, millisecond: 4 },
  ],
];

describe.each([
  ['values and conditions', values],
  ['arithmetic', numbers],
  ['conversions', conversions],
  ['arrays and sets', lists],
  ['strings', strings],
  ['dates', dates],
] as [string, Row[]][])('expressions on %s', (_area, rows) => {
  it.each(rows)('%s', (_title, expression, answer, doc = { d: spring, id }) => {
    expect(exact(evaluate(expression, doc))).toBe(exact(answer));
  });
});

describe('an expression', () => {
  const number = fc.oneof(
    fc.integer({ min: -9, max: 9 }),
    fc.double({ min: -9, max: 9, noNaN: true }),
    fc.integer({ min: -9, max: 9 }).map(long),
    fc.integer({ min: -99, max: 99 }).map((n) => dec(`${n}E-1`)),
  );
  const operand = fc.oneof(number, fc.constantFrom<unknown>(null, 'a', true, at('2024-01-01T00:00:00Z')));
  const name = fc.constantFrom(
    '$add',
    '$subtract',
    '$multiply',
    '$divide',
    '$mod',
    '$cmp',
    '$eq',
    '$max',
    '$ifNull',
  );
  const outcome = (expression: unknown, doc: Document): object => {
    try {
      return { value: exact(evaluate(expression, doc)) };
    } catch (error) {
      return { code: (error as MongoError).code };
    }
  };

  it('has one value for constants, fields and variables, and in a filter', () => {
    fc.assert(
      fc.property(name, operand, operand, (operator, x, y) => {
        const folded = { [operator]: [{ $literal: x }, { $literal: y }] };
        const read = { [operator]: ['$x', '$y'] };
        const bound = { $let: { vars: { a: '$x', b: '$y' }, in: { [operator]: ['$$a', '$$b'] } } };
        const mapped = { $first: [{ $map: { input: [1], in: read } }] };
        const expected = outcome(folded, {});
        for (const form of [read, bound, mapped]) expect(outcome(form, { x, y })).toEqual(expected);
        if ('code' in expected) return;
        const filter = { $expr: { $eq: [read, { $literal: evaluate(folded) }] } };
        expect(compileFilter(filter, ctx).matches({ x, y })).toBe(true);
      }),
    );
  });
});

describe('an expression refuses', () => {
  it.each([
    ['an unknown operator', { $nope: 1 }, 168],
    ['a zone in another case', { $hour: { date: spring, timezone: 'america/New_York' } }, 40485],
    ['a pattern of over 16 KB', { $regexMatch: { input: 'a', regex: 'a'.repeat(16_385) } }, 51111],
    ['an order without a key', { $sortArray: { input: [1], sortBy: {} } }, 2942505],
    ['two operators in one object', { $add: [1], $sum: 1 }, 15983],
    ['an undefined variable', '$$nobody', 17276],
    ['a name of the object prototype as a variable', '$$constructor', 17276],
    ['a wrong number of arguments', { $eq: [1] }, 16020],
    ['division by zero', { $divide: [1, 0] }, 2],
    ['addition of a string', { $add: ['x', 1] }, 14],
    ['a square root below zero', { $sqrt: -1 }, 28714],
    ['$in without a list', { $in: [1, 2] }, 40081],
    ['$size of a scalar', { $size: 1 }, 17124],
    ['$concat of a number', { $concat: [1] }, 16702],
    ['$toInt of a word', { $toInt: 'x' }, 241],
    ['$toString of a timestamp', { $toString: new Timestamp({ t: 1, i: 1 }) }, 241],
    ['$convert of bytes without a format', { $convert: { input: bytes('00'), to: 'string' } }, 4341115],
    [
      '$convert to a subtype that there is not',
      { $convert: { input: 1, to: { type: 'binData', subtype: 10 } } },
      4341107,
    ],
    ['$convert of half a byte', { $convert: { input: 'abc', to: 'binData', format: 'hex' } }, 241],
    ['$convert of three bytes to a number', { $convert: { input: bytes('000000'), to: 'int' } }, 241],
    ['$toDouble past the largest', { $toDouble: '1e309' }, 241],
    ['a zone in the wrong case', { $hour: { date: at('2024-01-01'), timezone: 'america/new_york' } }, 40485],
    ['a date without a day', { $toDate: '2024' }, 241],
    ['a date with a part given twice', { $toDate: '2024-06-15T12: 30:45Z' }, 241],
    ['arguments of $rand', { $rand: { seed: 1 } }, 3040501],
    ['a path of over 200 parts', `$${Array(201).fill('a').join('.')}`, 15],
    [
      'an amount that is whole but for its last digit',
      {
        $dateAdd: {
          startDate: at('2024-01-01'),
          unit: 'day',
          amount: dec('3.000000000000000000000000000000001'),
        },
      },
      5166405,
    ],
    ['a field without a name', { '': 1 }, 15998],
    ['$toInt past 32 bits', { $toInt: 1e10 }, 241],
    ['$toObjectId of a short text', { $toObjectId: '12' }, 241],
    ['$switch without a match', { $switch: { branches: [{ case: false, then: 1 }] } }, 40066],
    ['a power of a text', { $exp: 'a' }, 28765],
    ['degrees of a text', { $degreesToRadians: 'a' }, 28765],
    ['an unknown zone', { $hour: { date: spring, timezone: 'Mars/Base' } }, 40485],
    ['the year of a string', { $year: 'x' }, 16006],
    ['an unknown unit', { $dateAdd: { startDate: spring, unit: 'fortnight', amount: 1 } }, 9],
    ['an unknown date format', { $dateToString: { date: spring, format: '%Q' } }, 18536],
    ['a date it cannot read', { $dateFromString: { dateString: 'soon' } }, 241],
    ['$toDate past the last date', { $toDate: Number.MAX_SAFE_INTEGER }, 241],
    ['$toDate of the largest long', { $toDate: Long.MAX_VALUE }, 241],
    ['$convert past the last date', { $convert: { input: 8.64e15 + 1, to: 'date' } }, 241],
    ['$add past the last date', { $add: [spring, 2 ** 53] }, 15],
    ['$add of a date and infinity', { $add: [spring, Infinity] }, 15],
    ['$add of a date and no number', { $add: [NaN, spring] }, 15],
    ['$subtract past the first date', { $subtract: [spring, 2 ** 53] }, 15],
    [
      '$dateAdd past the last date',
      { $dateAdd: { startDate: spring, unit: 'year', amount: 300_000 } },
      5166406,
    ],
    [
      '$dateAdd past the last date in a zone',
      { $dateAdd: { startDate: spring, unit: 'day', amount: 1e9, timezone: berlin } },
      5166406,
    ],
    [
      '$dateSubtract past the first date',
      { $dateSubtract: { startDate: spring, unit: 'hour', amount: 1e13 } },
      5166406,
    ],
    [
      '$dateTrunc to before the first date',
      { $dateTrunc: { date: new Date(-8.64e15), unit: 'year', binSize: 7 } },
      15,
    ],
    ['local fields of a day after the last', { $hour: { date: new Date(8.64e15), timezone: '+01:00' } }, 15],
    [
      'an instant whose zone needs a day after the last',
      { $dateToParts: { date: new Date(8.64e15), timezone: 'Asia/Tokyo' } },
      15,
    ],
    ['a range without end', { $range: [0, 2_000_000_000] }, 146],
    [
      'an array that doubles without end',
      {
        $reduce: {
          input: { $range: [0, 60] },
          initialValue: [1],
          in: { $concatArrays: ['$$value', '$$value'] },
        },
      },
      146,
    ],
    [
      'a string that doubles without end',
      { $reduce: { input: { $range: [0, 60] }, initialValue: 'x', in: { $concat: ['$$value', '$$value'] } } },
      16493,
    ],
    ['a text that no document holds', { $strLenCP: 'x'.repeat(2 ** 24) }, 16493],
    [
      'a text that no document holds for its bytes',
      { $toUpper: { $concat: ['é'.repeat(2 ** 22), 'é'.repeat(2 ** 22)] } },
      16493,
    ],
    ['the count of a search', '$$SEARCH_META', 238],
    ['a long without room for its rounding', { $round: [Long.MAX_VALUE, -1] }, 51080],
    ['a pair after an object', { $arrayToObject: [[{ k: 'a', v: 1 }, ['b', 2]]] }, 40391],
    ['an object after a pair', { $arrayToObject: [[['b', 2], { k: 'a', v: 1 }]] }, 40396],
    ['an unknown member of $switch', { $switch: { branches: [{ case: true, then: 1 }], or: 1 } }, 40067],
    ['an unknown member of $reduce', { $reduce: { input: [], initialValue: 0, in: 0, as: 'a' } }, 40076],
    ['an unknown member of $let', { $let: { vars: {}, in: 1, as: 'a' } }, 16875],
    ['null as the name of a variable', { $map: { input: [1], as: null, in: 1 } }, 9],
    ['a variable with a capital', { $let: { vars: { A: 1 }, in: 1 } }, 9],
    ['bins of too many years', { $dateTrunc: { date: spring, unit: 'year', binSize: 2e11 } }, 5439006],
    ['bins of too many hours', { $dateTrunc: { date: spring, unit: 'hour', binSize: 3e12 } }, 5439002],
    ['Z beside a text', { $dateFromString: { dateString: '2024-01-01', timezone: 'Z' } }, 40485],
    ['$getField without its input', { $getField: { field: 'a' } }, 3041703],
    ['$unsetField with a value', { $unsetField: { field: 'a', input: {}, value: 1 } }, 4161101],
    ['$setField of a path', { $setField: { field: '$a', input: {}, value: 1 } }, 4161108],
    ['$unsetField of a null byte', { $unsetField: { field: 'a\0', input: {} } }, 9534700],
    ['a double below the smallest', { $toDouble: '1e-400' }, 241],
    ['a decimal below the smallest', { $convert: { input: '1E-6177', to: 'decimal' } }, 241],
    ['bytes from past 32 bits', { $substrBytes: ['hello', 1e20, 1] }, 31109],
    ['bytes without end', { $substr: ['hello', 0, Infinity] }, 31109],
    ['bytes from a decimal past 32 bits', { $substrBytes: ['hello', dec('1E+33'), 1] }, 50752],
    ['server-side JavaScript', { $function: { body: 'x', args: [], lang: 'js' } }, 31264],
    ['what it does not have', { $toHashedIndexKey: 'a' }, 238],
  ])('%s', (_title, expression, code) => {
    expect(() => evaluate(expression)).toThrow(expect.objectContaining({ code }));
  });
});

describe('any computation of a date', () => {
  const amount = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -1000, max: 1000 }),
    fc.double(),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
    fc.constantFrom(
      8.64e15,
      -8.64e15,
      8.64e15 + 1,
      2 ** 53,
      2 ** 63,
      dec('1E300'),
      dec('NaN'),
      dec('9223372036854775807'),
    ),
  );
  const date = fc.oneof(
    fc.date({ noInvalidDate: true }),
    fc.constantFrom(new Date(8.64e15), new Date(-8.64e15), spring),
  );
  const unit = fc.constantFrom(
    'year',
    'quarter',
    'month',
    'week',
    'day',
    'hour',
    'minute',
    'second',
    'millisecond',
  );
  const timezone = fc.constantFrom('UTC', berlin, 'America/New_York', '+14:00', '-11:30');
  const expression = fc.oneof(
    amount.map((input) => ({ $toDate: input })),
    amount.map((input) => ({ $convert: { input, to: 'date', onError: 'no date' } })),
    fc.tuple(date, amount).map((both) => ({ $add: both })),
    fc.tuple(date, amount).map((both) => ({ $subtract: both })),
    fc.tuple(date, date).map((both) => ({ $subtract: both })),
    fc.record({ startDate: date, unit, amount, timezone }).map((all) => ({ $dateAdd: all })),
    fc.record({ startDate: date, unit, amount, timezone }).map((all) => ({ $dateSubtract: all })),
    fc.record({ date, unit, binSize: amount, timezone }).map((all) => ({ $dateTrunc: all })),
    fc.record({ startDate: date, endDate: date, unit, timezone }).map((all) => ({ $dateDiff: all })),
    fc.record({ date, timezone }).map((all) => ({ $dateToParts: all })),
    fc.record({ date, timezone, iso8601: fc.constant(true) }).map((all) => ({ $dateToParts: all })),
    fc.record({ date, timezone }).map((all) => ({ $dateToString: all })),
    fc.record({ date, timezone }).map((all) => ({ $isoWeekYear: all })),
    fc
      .record({ year: amount, month: amount, day: amount, second: amount, millisecond: amount, timezone })
      .map((all) => ({ $dateFromParts: all })),
    fc.record({ isoWeekYear: amount, isoWeek: amount, timezone }).map((all) => ({ $dateFromParts: all })),
    fc
      .record({
        dateString: fc.constantFrom('9999-12-31T23:59:59', '0000-01-01', '2024-02-31', '2024-12-31T24:00:00'),
        timezone,
      })
      .map((all) => ({ $dateFromString: all })),
  );

  it('is answered or refused as MongoDB refuses it, never by an internal error', () => {
    fc.assert(
      fc.property(expression, (computed) => {
        try {
          expect(encodeDocument({ value: evaluate(computed) }).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(MongoError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('any instant', () => {
  const instant = fc.date({ min: at('1950-01-01'), max: at('2050-01-01'), noInvalidDate: true });
  const zone = fc.constantFrom(
    'UTC',
    berlin,
    'America/New_York',
    'Asia/Kolkata',
    'Australia/Adelaide',
    '-03:30',
  );

  it('is rebuilt from its parts unless the clocks repeat that hour', () => {
    fc.assert(
      fc.property(instant, zone, (date, timezone) => {
        const parts = evaluate({ $dateToParts: { date, timezone } }) as Document;
        const rebuilt = evaluate({ $dateFromParts: { ...parts, timezone } }) as Date;
        expect(evaluate({ $dateToParts: { date: rebuilt, timezone } })).toEqual(parts);
        expect(Number(rebuilt)).toBeLessThanOrEqual(Number(date));
      }),
    );
  });

  it('is truncated to a moment before it, in the same unit', () => {
    fc.assert(
      fc.property(
        instant,
        zone,
        fc.constantFrom('year', 'month', 'week', 'day', 'hour'),
        (date, timezone, unit) => {
          const start = evaluate({ $dateTrunc: { date, unit, timezone } }) as Date;
          expect(Number(start)).toBeLessThanOrEqual(Number(date));
          expect(evaluate({ $dateTrunc: { date: start, unit, timezone } })).toEqual(start);
          expect(exact(evaluate({ $dateDiff: { startDate: start, endDate: date, unit, timezone } }))).toBe(
            exact(long(0)),
          );
        },
      ),
    );
  });
});
