import { Double, Long, MongoClient, type Db } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from './embedded-mongo.js';

let server: EmbeddedMongo;
let client: MongoClient;
let db: Db;

beforeAll(async () => {
  server = await EmbeddedMongo.start();
  client = await MongoClient.connect(server.uri);
  db = client.db('shop');
});

afterAll(async () => {
  await client.close();
  await server.close();
});

describe('EmbeddedMongo through the driver', () => {
  it('stores, finds, changes and removes documents', async () => {
    const books = db.collection('books');
    await books.insertMany([
      { title: 'a', pages: 10 },
      { title: 'b', pages: 20 },
      { title: 'c', pages: 30 },
    ]);
    expect(await books.countDocuments({ pages: { $gte: 20 } })).toBe(2);
    expect((await books.updateMany({ pages: { $gt: 10 } }, { $inc: { pages: 1 } })).modifiedCount).toBe(2);
    expect(await books.find({}, { projection: { _id: 0 }, sort: { pages: -1 }, limit: 2 }).toArray()).toEqual(
      [
        { title: 'c', pages: 31 },
        { title: 'b', pages: 21 },
      ],
    );
    expect((await books.deleteOne({ title: 'a' })).deletedCount).toBe(1);
    expect(await books.distinct('title')).toEqual(['b', 'c']);
    const upsert = await books.updateOne({ title: 'z' }, { $set: { pages: 1 } }, { upsert: true });
    expect(upsert.upsertedCount).toBe(1);
    const groups = await books.aggregate([{ $group: { _id: null, sum: { $sum: '$pages' } } }]).toArray();
    expect(groups).toEqual([{ _id: null, sum: 53 }]);
  });

  it('keeps number types apart, also when another field changes', async () => {
    const numbers = db.collection('numbers', { promoteValues: false });
    await numbers.insertOne({ long: Long.fromNumber(5), double: new Double(3), int: 3 });
    await numbers.updateOne({}, { $set: { other: 1 } });
    const stored = await numbers.findOne({});
    expect(stored?.['long']).toBeInstanceOf(Long);
    expect(stored?.['double']).toBeInstanceOf(Double);
    expect(stored?.['int']._bsontype).toBe('Int32');
  });

  it('explains an indexed query as an IXSCAN', async () => {
    const items = db.collection('items');
    await items.insertMany(Array.from({ length: 300 }, (_, n) => ({ n, even: n % 2 === 0 })));
    await items.createIndex({ n: 1 });
    const plan = await items.find({ n: { $gt: 290 } }).explain('executionStats');
    expect(plan['queryPlanner'].winningPlan.inputStage).toMatchObject({ stage: 'IXSCAN', indexName: 'n_1' });
    expect(plan['executionStats']).toMatchObject({
      nReturned: 9,
      totalKeysExamined: 9,
      totalDocsExamined: 9,
    });
    expect(await items.find().batchSize(50).toArray()).toHaveLength(300);
  });
});
