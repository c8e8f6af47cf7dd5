// The questions of `npm run parity`: what MongoDB's documentation leaves to be tried, each on the same documents.
import { Decimal128, Double, Int32, Long, MinKey, ObjectId, Timestamp } from 'mongodb';

const id = (n) => new ObjectId(String(n).padStart(24, '0'));

/** A value of every type that orders, nested paths, arrays, null and missing. */
export const DOCUMENTS = [
  {
    _id: 1,
    v: new Int32(5),
    a: [1, 2, 3],
    s: 'Alpha',
    d: new Date(0),
    g: 'x',
    o: { p: 1, q: [{ r: 1 }, { r: 2 }] },
  },
  { _id: 2, v: new Double(5.5), a: [], s: 'alpha', d: new Date(86_400_000), g: 'x', o: { p: 2 } },
  { _id: 3, v: Long.fromNumber(7), a: [[1, 2], 3], s: 'Äther', d: null, g: 'y', o: {} },
  { _id: 4, v: Decimal128.fromString('7.0'), a: null, s: 'a.b*', g: 'y', o: [{ p: 1 }, { p: 3 }] },
  { _id: 5, v: null, s: '', g: null, o: { q: [{ r: 2 }, { r: 3 }] } },
  { _id: 6, a: 'text', s: 'line\nbreak', g: 'z' },
  { _id: 7, v: 'text', a: [null], g: 'z', b: true },
  { _id: 8, v: id(1), a: [{ k: 1 }, { k: 2 }], g: 'z', b: false },
  { _id: 9, v: new Date(5), a: [5, 'text', null], o: { q: 'r' } },
  { _id: 10, v: new Timestamp({ t: 1, i: 1 }), a: [-1], s: 'zeta', g: 'x' },
  { _id: 11, v: [5, 9], g: 'y' },
  { _id: 12, v: { n: 1 }, g: 'y' },
];

const filters = {
  'equality of number types': { v: 7 },
  'null finds missing': { v: null },
  'a range stays in its type': { v: { $gt: 1 } },
  'gte null': { v: { $gte: null } },
  'not equal to null': { a: { $ne: null } },
  'an array by its whole': { a: [1, 2, 3] },
  'an array in an array': { a: [1, 2] },
  'a nested path over arrays': { 'o.q.r': 2 },
  'an index of an array': { 'a.0': 1 },
  'two conditions of one array': { 'o.q.r': { $gt: 1, $lt: 2 } },
  $elemMatch: { 'o.q': { $elemMatch: { r: { $gt: 1, $lt: 3 } } } },
  '$size 0': { a: { $size: 0 } },
  $all: { a: { $all: [2, 3] } },
  '$all of a scalar': { g: { $all: ['x'] } },
  '$in with null': { g: { $in: [null, 'z'] } },
  $nin: { g: { $nin: ['x', 'y'] } },
  '$type number': { v: { $type: 'number' } },
  '$type array': { a: { $type: 'array' } },
  '$exists false': { v: { $exists: false } },
  $mod: { v: { $mod: [2, 1] } },
  '$regex without case': { s: { $regex: '^ALPHA', $options: 'i' } },
  '$regex over lines': { s: { $regex: '^break', $options: 'm' } },
  'quoted $regex': { s: { $regex: String.raw`^\Qa.b*\E$` } },
  '$not of a range': { v: { $not: { $gt: 6 } } },
  $nor: { $nor: [{ g: 'x' }, { g: 'y' }] },
  '$expr of missing': { $expr: { $eq: ['$v', null] } },
  '$expr orders types': { $expr: { $lt: ['$v', 'a'] } },
  'a document equals in its order': { o: { p: 2 } },
  'bits past the 64th': { v: { $bitsAllClear: [200] } },
  'more than MinKey': { none: { $gt: new MinKey() } },
  'a space that is none of ASCII': { s: { $regex: String.raw`\s` } },
  '$geoIntersects of nothing on earth': {
    a: { $geoIntersects: { $geometry: { type: 'Point', coordinates: [0, 91] } } },
  },
  '$geoIntersects beside another condition': {
    a: { $geoIntersects: { $geometry: { type: 'Point', coordinates: [0, 0] } }, $exists: true },
  },
  'an unknown operator': { v: { $nothing: 1 } },
  'an empty $in': { v: { $in: [] } },
  $bitsAllSet: { v: { $bitsAllSet: [0] } },
};

const dec = (text) => Decimal128.fromString(text);

/** Of constants, each asked on one document. */
const expressions = {
  'a date by its words': { $dateFromString: { dateString: '4th July 2017, 11:05pm' } },
  'a number as bytes': { $convert: { input: new Int32(258), to: 'binData', byteOrder: 'big' } },
  'a day of the year': { $dateFromString: { dateString: '2024 0', format: '%Y %j' } },
  'a decimal of zero': { $toDecimal: new Double(0) },
  'a place at the end of a text': { $indexOfCP: ['hello', '', 5] },
  'sorting by arrays': { $sortArray: { input: [{ a: [3, 1] }, { a: [2] }], sortBy: { a: 1 } } },
  'a root of a decimal': { $sqrt: dec('2') },
  'a power of a decimal': { $pow: [dec('0.5'), 2] },
  'a logarithm near one': { $ln: dec('2.718281828459045') },
  'a logarithm of decimals': { $log: [dec('64'), dec('2')] },
  'a sum of a decimal and a double': { $sum: [dec('0.1'), 0.1] },
  'a product with the sign of zero': { $multiply: [dec('-0'), 5] },
  'rounding a decimal keeps its places': { $round: [dec('1.5'), 3] },
  'truncating a double': { $trunc: [0.29, 2] },
  'a whole power of -1': { $pow: [-1, -3] },
  'a double in capitals': { $toUpper: 1234567.5 },
  'a large double as a text': { $toString: 1e16 },
  'minutes of a zone': { $dateToString: { date: new Date(0), format: '%Z', timezone: '-05:00' } },
  'a week that begins nowhere': { $dateTrunc: { date: new Date(0), unit: 'week', startOfWeek: null } },
  'a zone in another case': { $hour: { date: new Date(0), timezone: 'america/New_York' } },
  'a look behind of any length': { $regexMatch: { input: 'aab', regex: '(?<=a+)b' } },
  'the year of a late ObjectId': { $year: new ObjectId('ffffffff0000000000000000') },
};

const pipelines = {
  ...Object.fromEntries(
    Object.entries(expressions).map(([title, value]) => [
      title,
      [{ $match: { _id: 1 } }, { $project: { value } }],
    ]),
  ),
  '$near in a $match': [{ $match: { o: { $near: [0, 0] } } }],
  'a join of documents of its own': [
    {
      $lookup: {
        localField: 'g',
        foreignField: 'f',
        pipeline: [{ $documents: [{ f: 'x' }, { f: 'z' }] }],
        as: 'j',
      },
    },
    { $project: { j: 1 } },
  ],
  'sum of number types': [{ $group: { _id: null, n: { $sum: '$v' }, c: { $sum: 1 } } }],
  'average without numbers': [{ $match: { _id: 7 } }, { $group: { _id: null, n: { $avg: '$v' } } }],
  'group by null and missing': [{ $group: { _id: '$g', n: { $sum: 1 } } }, { $sort: { _id: 1 } }],
  'group by an array': [{ $group: { _id: '$a', n: { $sum: 1 } } }, { $sort: { _id: 1 } }],
  'unwind, with what is empty': [
    { $unwind: { path: '$a', preserveNullAndEmptyArrays: true, includeArrayIndex: 'i' } },
    { $project: { a: 1, i: 1 } },
  ],
  unwind: [{ $unwind: '$a' }, { $count: 'n' }],
  'count of nothing': [{ $match: { _id: 0 } }, { $count: 'n' }],
  'a projection keeps its order': [
    {
      $project: {
        s: 1,
        'o.p': 1,
        n: { $size: { $ifNull: [{ $cond: [{ $isArray: '$a' }, '$a', []] }, []] } },
      },
    },
  ],
  'exclusion of a path': [{ $project: { 'o.q.r': 0 } }, { $limit: 5 }],
  'dates as text in a zone': [
    { $match: { d: { $type: 'date' } } },
    {
      $project: {
        t: { $dateToString: { date: '$d', format: '%Y-%m-%d %H:%M %z', timezone: 'America/New_York' } },
      },
    },
  ],
  'truncated dates': [
    { $match: { d: { $type: 'date' } } },
    { $project: { t: { $dateTrunc: { date: '$d', unit: 'week', startOfWeek: 'monday' } } } },
  ],
  'days of a field with a week that begins nowhere': [
    { $match: { d: { $type: 'date' } } },
    { $project: { t: { $dateTrunc: { date: '$d', unit: 'day', startOfWeek: null } } } },
  ],
  'a join by an array': [
    { $lookup: { from: 'rows', localField: 'a', foreignField: '_id', as: 'j' } },
    { $project: { j: '$j._id' } },
  ],
  'a join with a pipeline': [
    {
      $lookup: {
        from: 'rows',
        localField: 'g',
        foreignField: 'g',
        pipeline: [{ $match: { _id: { $lt: 3 } } }],
        as: 'j',
      },
    },
    { $project: { j: '$j._id' } },
  ],
  buckets: [{ $match: { _id: { $lt: 9 } } }, { $bucket: { groupBy: '$_id', boundaries: [1, 5, 9] } }],
  'push of missing': [{ $sort: { _id: 1 } }, { $group: { _id: null, all: { $push: '$b' } } }],
  'min and max of types': [{ $group: { _id: null, min: { $min: '$v' }, max: { $max: '$v' } } }],
  'division by zero': [{ $project: { n: { $divide: [1, 0] } } }],
  'adding a text': [{ $match: { _id: 7 } }, { $project: { n: { $add: ['$v', 1] } } }],
  'conversion with onError': [
    { $project: { n: { $convert: { input: '$v', to: 'int', onError: 'bad', onNull: 'none' } } } },
  ],
  'conversion of a text': [{ $match: { _id: 7 } }, { $project: { n: { $toInt: '$v' } } }],
  'substrings of text with umlauts': [
    { $match: { _id: 3 } },
    { $project: { a: { $substrCP: ['$s', 0, 1] }, n: { $strLenBytes: '$s' } } },
  ],
  'a window': [
    {
      $setWindowFields: {
        partitionBy: '$g',
        sortBy: { _id: 1 },
        output: { n: { $sum: 1, window: { documents: ['unbounded', 'current'] } } },
      },
    },
    { $project: { n: 1 } },
    { $sort: { _id: 1 } },
  ],
  'an unknown stage': [{ $nothing: {} }],
  'an unknown expression': [{ $project: { n: { $nothing: 1 } } }],
  facets: [{ $facet: { one: [{ $count: 'n' }], two: [{ $limit: 1 }, { $project: { _id: 1 } }] } }],
  'sort by count': [{ $sortByCount: '$g' }, { $sort: { _id: 1 } }],
};

const updates = {
  '$inc of number types': [{ v: { $type: 'number' }, _id: { $lt: 5 } }, { $inc: { v: 1 } }],
  '$inc of a text': [{ _id: 7 }, { $inc: { v: 1 } }],
  '$push to nothing': [{ _id: 5 }, { $push: { a: { $each: [3, 1, 2], $sort: 1, $slice: 2 } } }],
  '$push to a text': [{ _id: 6 }, { $push: { a: 1 } }],
  '$addToSet of documents': [{ _id: 8 }, { $addToSet: { a: { $each: [{ k: 1 }, { k: 3 }] } } }],
  '$pull by condition': [{ _id: 1 }, { $pull: { a: { $gte: 2 } } }],
  '$unset in an array': [{ _id: 1 }, { $unset: { 'a.1': '' } }],
  '$set beyond an array': [{ _id: 1 }, { $set: { 'a.5': 9 } }],
  '$set through a text': [{ _id: 7 }, { $set: { 'v.x': 1 } }],
  $rename: [{ _id: 1 }, { $rename: { s: 'o.s' } }],
  '$min of types': [{ _id: 7 }, { $min: { v: 1 } }],
  'the positional operator': [{ _id: 1, a: 2 }, { $set: { 'a.$': 20 } }],
  'conflicting paths': [{ _id: 1 }, { $set: { o: 1, 'o.p': 2 } }],
  'another _id': [{ _id: 1 }, { $set: { _id: 2 } }],
  'a pipeline': [{ _id: 1 }, [{ $set: { n: { $add: ['$v', 1] } } }, { $unset: 'o' }]],
  'an upsert': [
    { _id: 99, 'o.p': 4, v: { $gt: 3 } },
    { $set: { s: 'new' }, $setOnInsert: { g: 'w' } },
    { upsert: true },
  ],
};

const sorts = {
  'all types up': { v: 1, _id: 1 },
  'all types down': { v: -1, _id: 1 },
  'arrays up': { a: 1, _id: 1 },
  'arrays down': { a: -1, _id: 1 },
};

/** Points as they are written in WKT: `0 0, 1 1`. */
const at = (text) => text.split(', ').map((point) => point.split(' ').map(Number));
const shape = (type, coordinates) => ({ type, coordinates });

const SHAPES = [
  { _id: 1, at: shape('LineString', at('-20 0, 20 0')) },
  { _id: 2, at: shape('LineString', at('1 1, 2 2')) },
  { _id: 3, at: shape('MultiPoint', at('0 0, 50 50')) },
  { _id: 4, at: shape('Polygon', [at('-1 -1, 1 -1, 1 1, -1 1, -1 -1')]) },
  { _id: 5, at: shape('Polygon', [at('10 10, 20 10, 20 20, 10 20, 10 10')]) },
  { _id: 6, at: shape('Point', [179.5, 0]) },
  { _id: 7, at: { type: 'GeometryCollection', geometries: [shape('Point', [3, 3])] } },
  { _id: 8, at: [4, 4] },
];

const around = (type, coordinates) => ({ $geometry: shape(type, coordinates) });
const square = [at('-10 -10, 10 -10, 10 10, -10 10, -10 -10')];
const geometries = {
  'within a polygon': { $geoWithin: around('Polygon', square) },
  'that meets a polygon': { $geoIntersects: around('Polygon', square) },
  'that meets a line': { $geoIntersects: around('LineString', at('0 -5, 0 5')) },
  'over the date line': {
    $geoIntersects: around('Polygon', [at('179 -1, -179 -1, -179 1, 179 1, 179 -1')]),
  },
  'within a cap': { $geoWithin: { $centerSphere: [[0, 0], 0.1] } },
  'within a box of the plane': { $geoWithin: { $box: at('-10 -10, 10 10') } },
};

/** Definitions that MongoDB refuses, or stores in another form. */
const indexes = {
  'a text index without weight': [{ a: 'text' }, { weights: { a: 0 } }],
  'text fields apart': [{ a: 'text', b: 1, c: 'text' }, {}],
  'a hidden index by a number': [{ a: 1 }, { hidden: 1 }],
  'a descending _id': [{ _id: -1 }, {}],
  'a field with a dollar': [{ $a: 1 }, {}],
  'a plane of some extent': [{ a: '2d' }, { min: -50, max: 50 }],
  'a plane without extent': [{ a: '2d' }, { min: 5, max: 5 }],
  'a part of a second': [{ a: 1 }, { expireAfterSeconds: 1.5 }],
};

/** Commands whose arguments are wrong, each in one. */
const commands = {
  'a write concern that is none': { insert: 'x', documents: [{}], writeConcern: { w: 51 } },
  'a write concern of a read': { find: 'x', writeConcern: { w: 1 } },
  'a read concern of a write': { insert: 'x', documents: [{}], readConcern: { level: 'majority' } },
  'a part of a millisecond': { ping: 1, maxTimeMS: 1.5 },
  'a command outside of the API': { distinct: 'x', key: 'a', apiVersion: '1', apiStrict: true },
  'the time in a count': { count: 'x', query: { $expr: { $lt: [new Date(0), '$$NOW'] } } },
  'an update without its filter': { update: 'x', updates: [{ u: {} }] },
  'an order of many': {
    update: 'x',
    updates: [{ q: {}, u: { $set: { a: 1 } }, multi: true, sort: { a: 1 } }],
  },
};

/**
 * What is run by its title; the answer, or the code of the error, is compared.
 * @type {Record<string, (rows: import('mongodb').Collection<any>, db: import('mongodb').Db) => Promise<unknown>>}
 */
export const CASES = {
  ...casesOf('filter', filters, (filter) => async (rows) => {
    const found = await rows.find(filter).sort({ _id: 1 }).toArray();
    return found.map(({ _id }) => _id);
  }),
  ...casesOf('sort', sorts, (sort) => async (rows) => {
    const found = await rows.find().sort(sort).toArray();
    return found.map(({ _id }) => _id);
  }),
  ...casesOf(
    'pipeline',
    pipelines,
    (pipeline) => (rows) => rows.aggregate(pipeline, { promoteValues: false }).toArray(),
  ),
  ...casesOf('update', updates, ([filter, change, options]) => async (rows) => {
    await rows.updateMany(filter, change, options);
    return rows.find({}, { promoteValues: false }).sort({ _id: 1 }).toArray();
  }),
  'index: a unique one refuses a second value': async (rows) => {
    await rows.createIndex({ s: 1 }, { unique: true, partialFilterExpression: { s: { $type: 'string' } } });
    await rows.insertOne({ _id: 50, s: 'Alpha' });
  },
  'index: a partial one under another collation': async (rows) => {
    await rows.createIndex({ s: 1 }, { partialFilterExpression: { s: 'alpha' } });
    const found = rows.find({ s: 'alpha' }).collation({ locale: 'en', strength: 2 }).sort({ _id: 1 });
    return (await found.toArray()).map(({ _id }) => _id);
  },
  'index: a partial filter with $ne': (rows) =>
    rows.createIndex({ s: 1 }, { partialFilterExpression: { s: { $ne: 'x' } } }),
  'index: the same keys, unique and not': async (rows) => {
    await rows.createIndex({ _id: 1, s: 1 }, { name: 'plain' });
    return rows.createIndex({ _id: 1, s: 1 }, { name: 'unique', unique: true });
  },
  ...casesOf(
    'index',
    indexes,
    ([key, options]) =>
      (_rows, db) =>
        db.collection('defined').createIndex(key, options),
  ),
  'index: dropped by a key that two have': async (_rows, db) => {
    const twice = db.collection('twice');
    await twice.createIndex({ s: 1 }, { name: 'plain' });
    await twice.createIndex({ s: 1 }, { name: 'sparse', sparse: true });
    await db.command({ dropIndexes: 'twice', index: { s: 1 } });
  },
  'index: a hint at one that leaves documents out': async (rows) => {
    await rows.createIndex({ b: 1 }, { name: 'held', sparse: true });
    return rows.countDocuments({}, { hint: 'held' });
  },
  ...casesOf('command', commands, (command) => (_rows, db) => db.command(command).then(() => 'taken')),
  'plan: a count of an indexed range': async (rows, db) => {
    await rows.createIndex({ d: 1 });
    const query = { d: { $gt: new Date(0) } };
    const plan = await db.command({
      explain: { count: rows.collectionName, query },
      verbosity: 'queryPlanner',
    });
    return plan.queryPlanner.winningPlan.inputStage.stage;
  },
  'plan: indexed fields alone': async (rows) => {
    await rows.createIndex({ d: 1 });
    const found = rows.find({ d: { $gt: new Date(0) } }).project({ _id: 0, d: 1 });
    return (await found.explain('queryPlanner')).queryPlanner.winningPlan.stage;
  },
  'a replacement that changes nothing, and names no _id': async (rows) =>
    (await rows.replaceOne({ _id: 6 }, { a: 'text', s: 'line\nbreak', g: 'z' })).modifiedCount,
  'index: a place that is none': async (_rows, db) => {
    /** @type {import('mongodb').Collection<any>} */
    const places = db.collection('places');
    await places.createIndex({ at: '2dsphere' });
    await places.insertOne({ _id: 1, at: { type: 'Point', coordinates: [200, 0] } });
  },
  ...casesOf('geometry', geometries, (condition) => async (_rows, db) => {
    /** @type {import('mongodb').Collection<any>} */
    const shapes = db.collection('shapes');
    if ((await shapes.countDocuments()) === 0) await shapes.insertMany(SHAPES);
    const found = await shapes.find({ at: condition }).sort({ _id: 1 }).toArray();
    return found.map(({ _id }) => _id);
  }),
  'count: an unknown operator where there is nothing': (_rows, db) =>
    db.command({ count: 'nothing', query: { v: { $nothing: 1 } } }),
  'collation: without case': async (rows) => {
    const found = rows.find({ s: 'ALPHA' }).collation({ locale: 'en', strength: 2 }).sort({ _id: 1 });
    return (await found.toArray()).map(({ _id }) => _id);
  },
  'distinct: over arrays': (rows) => rows.distinct('a'),
};

function casesOf(kind, cases, runOf) {
  return Object.fromEntries(Object.entries(cases).map(([title, one]) => [`${kind}: ${title}`, runOf(one)]));
}
