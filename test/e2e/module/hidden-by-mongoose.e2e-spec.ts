import 'reflect-metadata';
import {
  getConnectionToken,
  getModelToken,
  MongooseModule,
  Prop,
  Schema,
  SchemaFactory,
} from '@nestjs/mongoose';
import { Test, type TestingModule } from '@nestjs/testing';
import mongoose, { type Connection, type Model } from 'mongoose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { type Database, startDatabase } from '../../support/service.js';

const HELD = 'zekret';
const { Union } = mongoose.Schema.Types;

@Schema({ _id: false })
class Card {
  @Prop() brand!: string;
  @Prop({ select: 0 as never }) number!: string;
}

@Schema({ collection: 'people' })
class Person {
  @Prop() name!: string;
  @Prop() city!: string;
  @Prop({ select: 0 as never }) resetToken!: string;
  @Prop({ select: 'no' as never, alias: 'pin' }) code!: string;
  @Prop({ get: () => 'nothing' }) later!: string;
  @Prop({ type: SchemaFactory.createForClass(Card) }) card!: Card;
  @Prop({ type: [SchemaFactory.createForClass(Card)] }) cards!: Card[];
  @Prop({ type: [[SchemaFactory.createForClass(Card)]] as never }) table!: Card[][];
  @Prop({ type: Union as never, of: [Number, SchemaFactory.createForClass(Card)] }) either!: unknown;
  @Prop({ type: Map, of: SchemaFactory.createForClass(Card) }) byName!: Map<string, Card>;
}

const PersonSchema = SchemaFactory.createForClass(Person);
PersonSchema.plugin((schema) => {
  schema.add({ added: { type: String, select: 0 } } as never);
  schema.path('later').select(false);
});

/** Every name of a path whose value no answer may hold. */
const HIDDEN = [
  'resetToken',
  'code',
  'later',
  'added',
  'card.number',
  'cards.number',
  'table',
  'either',
  'byName',
];

let database: Database;
let app: TestingModule;
let parley: Parley;
let agent: Agent;
beforeAll(async () => {
  database = await startDatabase({});
  const options = (people: Model<Person>, connection: Connection): ParleyModuleOptions => ({
    database: { connection, storage: 'plain' },
    classes: declareClasses([people]),
    agents: { desk: { permissions: 'readonly' } },
  });
  app = await Test.createTestingModule({
    imports: [
      MongooseModule.forRoot(database.uri, { dbName: 'people' }),
      ParleyModule.forRootAsync({
        imports: [MongooseModule.forFeature([{ name: Person.name, schema: PersonSchema }])],
        inject: [getModelToken(Person.name), getConnectionToken()],
        useFactory: options,
      }),
    ],
  }).compile();
  app.useLogger(false);
  await app.init();
  const held = { brand: 'visa', number: `${HELD}-number` };
  // As another program writes them: a hidden path that the schema got later, too.
  await app
    .get<Connection>(getConnectionToken())
    .collection('people')
    .insertOne({
      name: 'Ada',
      city: 'Oslo',
      resetToken: `${HELD}-token`,
      code: `${HELD}-code`,
      later: `${HELD}-later`,
      added: `${HELD}-added`,
      card: held,
      cards: [held],
      table: [[held]],
      either: held,
      byName: { one: held },
      unknown: `${HELD}-unknown`,
    });
  parley = app.get(Parley);
  agent = parley.agentFor({ agent: 'desk', principal: 'test' });
});
afterAll(async () => {
  await app?.close();
  await database?.stop();
});

async function ask(method: string, params: object): Promise<string> {
  return JSON.stringify((await parley.handle({ jsonrpc: '2.0', id: 1, method, params }, agent)).body);
}
const call = (name: string, args: object) =>
  ask('tools/call', { name, arguments: { class_name: 'Person', ...args } });

describe('what Mongoose does not select', () => {
  it.each<[string, object]>([
    ['query_class', {}],
    ['query_class', { keys: HIDDEN.filter((path) => !path.includes('.')) }],
    ['get_sample_objects', {}],
    ['get_schema', {}],
    ['aggregate', { pipeline: [{ $replaceWith: { all: '$$ROOT' } }] }],
    ['aggregate', { pipeline: [{ $project: { pairs: { $objectToArray: '$$ROOT' } } }] }],
    ['aggregate', { pipeline: [{ $group: { _id: '$card', all: { $push: '$$ROOT' } } }] }],
    ['aggregate', { pipeline: [{ $unwind: '$cards' }, { $replaceWith: '$cards' }] }],
    ['export_data', {}],
    ['export_data', { format: 'csv' }],
    ['export_data', { format: 'ndjson', columns: ['name', 'card', 'cards'] }],
  ])('is in no answer of %s %j', async (tool, args) => {
    const answer = await call(tool, args);
    expect(answer).not.toContain(`${HELD}-`);
    expect(answer).not.toMatch(/"(?:resetToken|code|pin|later|added|either|byName|table)":/);
  });

  it('leaves the rest readable', async () => {
    expect(await call('query_class', { where: { name: 'Ada' } })).toMatch(/Oslo.*visa|visa.*Oslo/);
    expect(await call('distinct', { field: 'city' })).toContain('Oslo');
  });

  it.each(HIDDEN)('%s answers no question and no grouping', async (path) => {
    for (const [tool, args] of [
      ['query_class', { where: { [path]: { $exists: true } } }],
      ['query_class', { where: { $or: [{ name: 'x' }, { [path]: { $regex: HELD } }] } }],
      ['count_objects', { where: { [path]: { $gt: '' } } }],
      ['query_class', { order: path }],
      ['distinct', { field: path }],
      ['group_by', { field: path }],
      ['aggregate', { pipeline: [{ $match: { [path]: { $exists: true } } }] }],
      ['aggregate', { pipeline: [{ $sort: { [path]: 1 } }, { $project: { name: 1 } }] }],
    ] as const) {
      const answer = await call(tool, args);
      expect(answer).not.toContain(`${HELD}-`);
      // A pipeline may see nothing in the place of a masked path; a question that is refused says so.
      if (tool !== 'aggregate')
        expect([tool, args, answer]).toEqual([tool, args, expect.stringMatching(/"isError":true|"error":/)]);
    }
  });

  it('is in no resource and no completion', async () => {
    for (const uri of ['parse://Person/schema', 'parse://Person/samples', 'parse://Person/count'])
      expect(await ask('resources/read', { uri })).not.toMatch(/zekret-|resetToken|later|added/);
    expect(
      await ask('completion/complete', {
        ref: { type: 'ref/prompt', name: 'class_overview' },
        argument: { name: 'class_name', value: 'P' },
      }),
    ).not.toContain(HELD);
  });

  it('stays away when a path is added to the schema after the classes were read', async () => {
    PersonSchema.add({ unknown: String } as never);
    expect(await call('query_class', {})).not.toContain(`${HELD}-unknown`);
  });
});
