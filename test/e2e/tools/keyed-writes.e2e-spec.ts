import 'reflect-metadata';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { loadConfig } from '#config';
import { Agent, MASTER, McpRequest } from '#core';
import { MongoConnection } from '#data-mongo';
import { Kernel } from '#dispatcher';
import { InstanceModule } from '#parley/instance';
import { readEnvironmentGates } from '#policy';
import { openSharedState, processState, type SharedState } from '#state';
import { type RedisServer, startRedis } from '#state/contracts';
import { GATES } from '../../properties/asked-service.js';
import { makeFolder } from '../../support/started.js';

const WRITER = { permissions: 'write', rateLimit: 1_000_000 };
const Note = { tenantScope: { field: 'orgId' }, fields: ['title', 'state'] };
const POLICY = { unlistedClasses: 'refuse', classes: { Note } };
const SCHEMA = {
  objectId: 'string',
  createdAt: 'date',
  updatedAt: 'date',
  title: 'string',
  orgId: 'string',
  state: 'string',
};

type Members = Record<string, unknown>;
interface Answer {
  readonly isError: boolean;
  readonly code: unknown;
  readonly data: Members;
}

let embedded: EmbeddedMongo;
let redis: RedisServer;
let client: MongoClient;
let state: SharedState;
const folder = makeFolder('keyed');
const apps: INestApplicationContext[] = [];
const connections: MongoConnection[] = [];
let databases = 0;

beforeAll(async () => {
  Logger.overrideLogger(false);
  [embedded, redis] = await Promise.all([EmbeddedMongo.start(), startRedis()]);
  client = await MongoClient.connect(embedded.uri);
  state = await openSharedState({ url: redis.url, log: { warn: () => undefined } });
}, 60_000);
afterAll(async () => {
  for (const app of apps) await app.close();
  for (const connection of connections) await connection.close();
  await client?.close();
  await state?.close();
  await redis?.stop();
  await embedded?.close();
  Logger.overrideLogger(undefined as never);
});

/** One replica, asked by one person. */
async function openReplica(
  database: Db,
  shared: SharedState,
  config: { policy?: object; agents?: object } = {},
) {
  const own = mkdtempSync(join(folder, 'replica-'));
  const settings = {
    database: { uri: embedded.uri, name: database.databaseName },
    agents: { desk: WRITER, phone: WRITER, ...config.agents },
    auth: [{ apiKey: 'the-key-of-the-desk', agent: 'desk' }],
    policy: config.policy ?? POLICY,
  };
  writeFileSync(join(own, 'parley.yaml'), stringify(settings));
  const loaded = loadConfig({}, own);
  const connection = new MongoConnection({
    uri: embedded.uri,
    database: database.databaseName,
    timeout: 60_000,
  });
  connections.push(connection);
  const parts = { loaded, connection, shared, gates: readEnvironmentGates(GATES), overrides: [] };
  const app = await NestFactory.createApplicationContext(InstanceModule.forRoot(parts), { logger: false });
  apps.push(app);
  const kernel = app.get<Kernel>(Kernel);
  return async (
    tool: string,
    args: Members,
    tenantId: string | null = 'acme',
    name = 'desk',
  ): Promise<Answer> => {
    const definition = loaded.agents.get(name);
    if (!definition) throw new Error(`no agent ${name}`);
    const agent = new Agent({ definition, identity: MASTER, principal: 'ada', tenantId });
    const params = { name: tool, arguments: { class_name: 'Note', ...args } };
    const transport = { version: '2025-11-25', signal: new AbortController().signal, requestId: 1 };
    const reply = await kernel.dispatch('tools/call', params, new McpRequest(agent, transport));
    const result = (reply as { result: Members }).result;
    const meta = result['_meta'] as Members | undefined;
    return {
      isError: result['isError'] === true,
      code: meta?.['parse.error_code'],
      data: (result['structuredContent'] ?? {}) as Members,
    };
  };
}

async function newDatabase(): Promise<Db> {
  const database = client.db(`keyed${(databases += 1)}`);
  await database.collection('_SCHEMA').insertOne({ _id: 'Note' as never, ...SCHEMA });
  return database;
}

describe.each([
  ['this process', () => processState()],
  ['Redis', () => state],
])('a write with an idempotency_key, kept in %s', { timeout: 60_000 }, (_where, open) => {
  const createdIn = ({ databaseName }: Db) => ({
    fields: { title: 'one' },
    idempotency_key: `key-of-${databaseName}`,
  });

  it('is remembered for its principal, tenant and agent, and for no other two of them', async () => {
    const database = await newDatabase();
    const call = await openReplica(database, open());
    const created = createdIn(database);
    const askers = [
      ['acme', 'desk'],
      ['blue', 'desk'],
      ['acme', 'phone'],
    ] as const;
    const ids: unknown[] = [];
    for (const [tenant, agent] of askers) {
      const answer = await call('create_object', created, tenant, agent);
      expect(answer).toMatchObject({ isError: false, data: { object: { title: 'one' } } });
      ids.push(answer.data['object_id']);
    }
    expect(new Set(ids).size).toBe(3);
    for (const [index, [tenant, agent]] of askers.entries())
      expect((await call('create_object', created, tenant, agent)).data['object_id']).toBe(ids[index]);
    const rows = await database.collection('Note').find().toArray();
    expect(rows.map(({ orgId }) => orgId as string).sort()).toEqual(['acme', 'acme', 'blue']);
  });

  it('is not answered again when the row is out of sight by then', async () => {
    const database = await newDatabase();
    const call = await openReplica(database, open());
    const created = createdIn(database);
    const { data } = await call('create_object', created);
    const id = data['object_id'];
    const update = {
      object_id: id,
      fields: { state: 'open' },
      idempotency_key: `${created.idempotency_key}-2`,
    };
    expect(await call('update_object', update)).toMatchObject({ isError: false });
    await database.collection('Note').updateOne({ _id: id as never }, { $set: { orgId: 'blue' } });
    for (const [tool, args] of [
      ['create_object', created],
      ['update_object', update],
    ] as const) {
      const again = await call(tool, args);
      expect(again).toMatchObject({ isError: true, code: 'access_denied' });
    }
    await database.collection('Note').updateOne({ _id: id as never }, { $set: { orgId: 'acme' } });
    expect(await call('create_object', created)).toMatchObject({ isError: false, data: { object_id: id } });
  });

  it('is not answered again by a replica whose policy permits it no more', async () => {
    const database = await newDatabase();
    const shared = open();
    const call = await openReplica(database, shared);
    const created = createdIn(database);
    expect(await call('create_object', created)).toMatchObject({ isError: false });
    const narrowed: { policy?: object; agents?: object }[] = [
      { policy: { ...POLICY, classes: { Note: { ...Note, hidden: true } } } },
      { policy: { ...POLICY, classes: { Note: { ...Note, fields: ['state'] } } } },
      { agents: { desk: { ...WRITER, tools: { except: ['create_object'] } } } },
      { agents: { desk: { ...WRITER, permissions: 'readonly' } } },
      { agents: { desk: { ...WRITER, filters: { Note: { state: 'open' } } } } },
    ];
    for (const config of narrowed) {
      const narrow = await openReplica(database, shared, config);
      const again = await narrow('create_object', created);
      expect([config, again.isError, again.data['object_id']]).toEqual([config, true, undefined]);
    }
    expect(await call('create_object', created)).toMatchObject({ isError: false });
  });
});
