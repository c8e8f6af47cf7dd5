import 'reflect-metadata';
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { getConnectionToken, MongooseModule } from '@nestjs/mongoose';
import { Test } from '@nestjs/testing';
import { MongoClient } from 'mongodb';
import mongoose, { type Connection, Schema } from 'mongoose';
import { describe, expect, it } from 'vitest';
import { ConfigError, Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const within = (database: ParleyModuleOptions['database']): ParleyModuleOptions => ({
  ...(database && { database }),
  policy: POSTS_POLICY,
  agents: { desk: { permissions: 'readonly', tenantId: 'acme' } },
});

async function countOf(parley: Parley): Promise<unknown> {
  const params = { name: 'count_objects', arguments: { class_name: 'Post' } };
  const { body } = await parley.handle(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    parley.agentFor({ agent: 'desk', principal: 'test' }),
  );
  return body;
}

const ONE_ANSWER = { result: { structuredContent: { count: expect.any(Number) as number } } };

/** Uses the connection of the application until its end. */
@Injectable()
class LastReader implements OnApplicationShutdown {
  static last: unknown;
  constructor(@Inject(getConnectionToken()) private readonly connection: Connection) {}

  async onApplicationShutdown(): Promise<void> {
    LastReader.last = await this.connection.collection('Post').countDocuments();
  }
}

@Module({ providers: [LastReader] })
class ReadingModule {}

const withMongoose = (options: (connection: Connection) => ParleyModuleOptions, lazyConnection = false) => [
  MongooseModule.forRoot(posts.uri, { dbName: 'parley', lazyConnection }),
  ParleyModule.forRootAsync({ inject: [getConnectionToken()], useFactory: options }),
];

/** The errors that end the start. */
async function errorsOf(options: ParleyModuleOptions): Promise<unknown> {
  const compiling = Test.createTestingModule({ imports: [ParleyModule.forRoot(options)] }).compile();
  const error = await compiling.then(
    (app) => app.close(),
    (reason: unknown) => reason,
  );
  return error instanceof ConfigError ? error.issues.map(({ path }) => path).sort() : error;
}

describe('database.connection', () => {
  it.each([false, true])('is the connection of @nestjs/mongoose, connected lazily: %s', async (lazy) => {
    const imports = withMongoose((connection) => within({ connection }), lazy);
    const app = await Test.createTestingModule({ imports: [...imports, ReadingModule] }).compile();
    app.useLogger(false);
    await app.init();
    expect(await countOf(app.get(Parley))).toMatchObject(ONE_ANSWER);
    await app.close();
    expect(LastReader.last).toBeGreaterThan(0);
  });

  it('is a client that stays open when the application ends', async () => {
    const client = new MongoClient(posts.uri, { promoteValues: false });
    const imports = [ParleyModule.forRoot(within({ connection: client, name: 'parley' }))];
    const app = await Test.createTestingModule({ imports }).compile();
    app.useLogger(false);
    await app.init();
    expect(await countOf(app.get(Parley))).toMatchObject(ONE_ANSWER);
    await app.close();
    expect(await client.db('parley').collection('Post').countDocuments()).toBeTruthy();
    await client.close();
  });

  it('serves two instances of one application', async () => {
    const client = new MongoClient(posts.uri);
    const database = { connection: client, name: 'parley' };
    const imports = [
      ParleyModule.forRoot(within(database)),
      ParleyModule.forRoot({ ...within(database), name: 'other', server: { path: '/other' } }),
    ];
    const app = await Test.createTestingModule({ imports }).compile();
    app.useLogger(false);
    await app.init();
    expect(await countOf(app.get(Parley))).toMatchObject(ONE_ANSWER);
    await app.close();
    await client.close();
  });

  it('is an error beside a URI or a seed, with every other error of the options', async () => {
    const client = new MongoClient(posts.uri);
    const wrong = within({ connection: client, uri: posts.uri, seed: 'seed.json' });
    expect(await errorsOf({ ...wrong, server: { port: -1 } })).toEqual([
      'database.seed',
      'database.uri',
      'server.port',
    ]);
    await client.close();
  });

  it('never falls back to another database when it is undefined or no connection', async () => {
    for (const connection of [undefined, null, 'mongodb://127.0.0.1'])
      expect(await errorsOf(within({ connection } as never))).toEqual(['database.connection']);
  });
});

describe('classes of Mongoose models', () => {
  it('keep discriminators apart, and show no byte of what a schema does not select', async () => {
    const connection = await mongoose.createConnection(posts.uri, { dbName: 'events' }).asPromise();
    const secret = { type: String, select: false };
    const base = connection.model('Event', new Schema({ at: Number, meta: { note: String, token: secret } }));
    const click = base.discriminator('Click', new Schema({ target: String, ip: secret }));
    const view = base.discriminator('View', new Schema({ page: String }));
    await click.create({ at: 1, target: 'buy', ip: 'S3CRET-ip', meta: { note: 'n', token: 'S3CRET-token' } });
    await view.create({ at: 2, page: 'home', meta: { token: 'S3CRET-other' } });
    const options: ParleyModuleOptions = {
      database: { connection, storage: 'plain' },
      classes: declareClasses([base, click, view]),
      agents: { desk: { permissions: 'readonly' } },
    };
    const app = await Test.createTestingModule({ imports: [ParleyModule.forRoot(options)] }).compile();
    app.useLogger(false);
    await app.init();
    const parley = app.get(Parley);
    const agent = parley.agentFor({ agent: 'desk', principal: 'test' });
    const ask = async (name: string, args: object) => {
      const params = { name, arguments: args };
      const answer = await parley.handle({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, agent);
      return JSON.stringify(answer.body);
    };
    for (const class_name of ['Event', 'Click', 'View'])
      for (const tool of ['query_class', 'get_schema', 'export_data', 'get_sample_objects'])
        expect(await ask(tool, { class_name })).not.toMatch(/S3CRET|"token|"ip/);
    const clicks = await ask('query_class', { class_name: 'Click' });
    expect(clicks).toContain('buy');
    expect(clicks).not.toContain('home');
    expect(await ask('count_objects', { class_name: 'View' })).toContain('"count":1');
    expect(await ask('count_objects', { class_name: 'Event' })).toContain('"count":2');
    expect(await ask('count_objects', { class_name: 'Click', where: { kind: 'View' } })).toContain(
      '"count":0',
    );
    await app.close();
    await connection.close();
  });
});
