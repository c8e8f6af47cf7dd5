import { MongooseModule, getConnectionToken, getModelToken } from '@nestjs/mongoose';
import { Test } from '@nestjs/testing';
import { ParleyModule } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { ObjectId } from 'mongodb';
import { type Connection, type Model, Schema } from 'mongoose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestingApplication, createTestingOver } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';
import { TestingDatabase } from './testing-database.js';

interface Repair {
  readonly number: string;
}

const SCHEMA = new Schema<Repair>({ number: { type: String, unique: true } });
const MODEL = { name: 'Repair', schema: SCHEMA };

describe('A test over the Mongoose of an application', () => {
  it.each([
    ['the database of the connection string', {}],
    ['another database', { dbName: 'workshop' }],
  ])('finds no row of the test before it: %s', async (_, mongoose) => {
    const database = await TestingDatabase.start();
    const module = await Test.createTestingModule({
      imports: [
        MongooseModule.forRoot(database.uri, mongoose),
        MongooseModule.forFeature([MODEL]),
        ParleyModule.forRootAsync({
          imports: [MongooseModule.forFeature([MODEL])],
          inject: [getConnectionToken(), getModelToken('Repair')],
          useFactory: (connection: Connection, repairs: Model<Repair>) => ({
            database: { connection: connection as never, storage: 'plain' },
            classes: declareClasses([repairs]),
            agents: { clerk: {} },
          }),
        }),
      ],
    }).compile();
    await module.init();
    await using app = createTestingOver(module, { database });
    const repairs = module.get<Model<Repair>>(getModelToken('Repair'));
    await repairs.init();
    const count = async () =>
      ((await app.as('clerk').call('count_objects', { class_name: 'Repair' })).data as { count: number })
        .count;

    await repairs.create({ number: 'R-1' });
    expect(await count()).toBe(1);
    await app.reset();
    expect(await count()).toBe(0);
    expect(await repairs.countDocuments()).toBe(0);
    await repairs.create({ number: 'R-1' });
    // Indexes of the application stay.
    await expect(repairs.create({ number: 'R-1' })).rejects.toThrow(/E11000|duplicate/);
  });
});

describe('A path whose type a schema does not tell', () => {
  const schema = new Schema({
    number: String,
    meta: Schema.Types.Mixed,
    mechanic: Schema.Types.ObjectId,
    parts: [Schema.Types.Mixed],
  });

  it('is a column before any document holds it, for fields, filters and conditions', async () => {
    const database = await TestingDatabase.start();
    const model = { name: 'Job', schema };
    const module = await Test.createTestingModule({
      imports: [
        MongooseModule.forRoot(database.uri),
        ParleyModule.forRootAsync({
          imports: [MongooseModule.forFeature([model])],
          inject: [getConnectionToken(), getModelToken('Job')],
          useFactory: (connection: Connection, jobs: Model<object>) => ({
            database: { connection: connection as never, storage: 'plain' },
            classes: declareClasses([jobs]),
            policy: {
              classes: { Job: { largeFields: ['meta'], filters: { 'meta.gone': { $ne: true } } } },
            },
            agents: { clerk: {} },
          }),
        }),
      ],
    }).compile();
    await module.get<Model<object>>(getModelToken('Job')).createCollection();
    await module.init();
    await using app = createTestingOver(module, { database });
    const find = async (where: object) => {
      const { data } = await app.as('clerk').call('query_class', { class_name: 'Job', where });
      return (data as { results: { number: string }[] }).results.map(({ number }) => number);
    };
    expect(await find({ meta: { $exists: true } })).toEqual([]);

    const mechanic = new ObjectId();
    const jobs = module.get<Model<object>>(getModelToken('Job'));
    await jobs.create({ number: 'J-1', meta: { level: 3 }, mechanic, parts: ['bolt', 4] });
    await jobs.create({ number: 'J-2', meta: { gone: true } });
    await jobs.create({ number: 'J-3', meta: 'a text' });
    expect(await find({})).toEqual(['J-1', 'J-3']);
    expect(await find({ 'meta.level': { $gte: 3 } })).toEqual(['J-1']);
    expect(await find({ meta: 'a text' })).toEqual(['J-3']);
    expect(await find({ mechanic: mechanic.toHexString() })).toEqual(['J-1']);
    expect(await find({ parts: 4 })).toEqual(['J-1']);
  });
});

describe('A test over plain collections', () => {
  const id = new ObjectId();
  const due = new Date('2026-01-02T03:04:05.006Z');
  let app: TestingApplication;
  beforeAll(async () => {
    app = await createTestingApplication({
      database: { storage: 'plain' },
      seed: {
        collections: {
          repairs: [
            { _id: id, number: 'R-1', due, shop: 'north' },
            {
              _id: { $oid: '65a0000000000000000000aa' },
              number: 'R-2',
              due: { $date: '2026-02-03T00:00:00Z' },
            },
          ],
        },
      },
      classes: [
        {
          className: 'Repair',
          config: {
            collection: 'repairs',
            properties: { number: { type: 'String' }, due: { type: 'Date' }, shop: { type: 'String' } },
            fields: ['number', 'due'],
          },
        },
      ],
      agents: { clerk: {}, editor: { permissions: 'write' } },
      gates: 'open',
    });
  });
  beforeEach(() => app.reset());
  afterAll(() => app.close());

  it('begins with the documents of the seed, stored as they are', async () => {
    const { data } = await app.as('clerk').call('query_class', { class_name: 'Repair', order: 'number' });
    expect((data as { results: object[] }).results).toMatchObject([
      { objectId: id.toHexString(), number: 'R-1', due: due.toISOString() },
      { objectId: '65a0000000000000000000aa', number: 'R-2', due: '2026-02-03T00:00:00.000Z' },
    ]);
    expect(await app.ungoverned.get('Repair', id.toHexString())).toMatchObject({ shop: 'north' });
  });

  it('goes back to them', async () => {
    const change = { class_name: 'Repair', object_id: id.toHexString(), fields: { number: 'R-9' } };
    await app.as('editor').call('update_object', change);
    expect(await app.ungoverned.find('Repair', { number: 'R-9' })).toHaveLength(1);
    await app.reset();
    expect(await app.ungoverned.find('Repair', { number: 'R-9' })).toHaveLength(0);
    expect(await app.ungoverned.count('Repair')).toBe(2);
  });

  it('is refused with collections that are no documents', async () => {
    await expect(TestingDatabase.start({ collections: { repairs: [1] } })).rejects.toThrow(
      'collections.repairs[0]: must be an object',
    );
  });
});
