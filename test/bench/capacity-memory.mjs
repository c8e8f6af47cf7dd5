// What is held in memory, by the service and by Redis: sessions, streams, callers at their rate limit, agents, classes.
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { Client, CONFIGURED, startMeasured } from './capacity-kinds.mjs';

/** Fewer than a principal may have sessions. */
const SESSIONS = 900;
const CALLERS = 20;
/** The default rate limit: calls whose times Redis keeps. */
const RATE = 60;
const AGENTS = 5000;
const CLASSES = 1000;
const ACTIVE = 50;

const named = (count, name, options) =>
  Object.fromEntries(Array.from({ length: count }, (_, number) => [`${name}${number}`, { ...options }]));
const keysOf = (agents) => Object.keys(agents).map((agent) => ({ apiKey: `key-of-${agent}`, agent }));
const keyOf = (agent) => ({ 'x-mcp-api-key': `key-of-${agent}` });
const perOne = (bytes, count) => Math.max(0, Math.round(bytes / count));

/** Seconds of CPU in a second: a service that takes less has ended what it does after its start, such as comparing lists of tools. */
const AT_REST = 0.05;

/** Bytes alive after garbage was collected; buffers are outside of the heap. */
async function alive(service) {
  let used;
  do {
    const before = await service.cpuSeconds();
    await pause(1000);
    used = (await service.cpuSeconds()) - before;
  } while (used > AT_REST);
  await service.memory();
  await pause(500);
  const { heapUsed, external } = await service.memory();
  return heapUsed + external;
}

/** Bytes of the lists that hold so many times of calls. */
async function limitsAt({ redis }, calls) {
  let bytes = 0;
  for (const key of await redis.keys('parley:{rate:*'))
    if ((await redis.llen(key)) === calls) bytes += await redis.memory('USAGE', key);
  return bytes;
}

async function sessionsAndStreams({ uri, redisUrl, redis }) {
  const agents = named(CALLERS, 'caller', { tenantId: 'northside', rateLimit: RATE });
  const service = await startMeasured({ uri, redis: redisUrl, agents, auth: keysOf(agents) });
  // A principal that has no sessions yet: of one that has its share, each new session removes another.
  const client = new Client(service, keyOf('caller0'));
  const warm = await client.session();
  (await client.listen(warm)).close();
  const empty = [await alive(service), (await redis.counters()).memory];
  const sessions = [];
  for (let number = 0; number < SESSIONS; number += 1) sessions.push(await client.session());
  const opened = [await alive(service), (await redis.counters()).memory];
  const resident = (await service.memory()).rss;
  const open = [];
  for (const session of sessions) open.push(await client.listen(session));
  await pause(5000);
  const listening = (await service.memory()).rss;
  for (const stream of open) stream.close();
  for (const agent of Object.keys(agents)) {
    const caller = new Client(service, keyOf(agent));
    for (let times = 0; times < RATE; times += 1)
      await caller.tool('count_objects', { class_name: 'Listing' });
    caller.close();
  }
  const counted = await limitsAt(redis, RATE);
  client.close();
  await service.stop();
  return {
    service: Math.round(resident),
    session: perOne(opened[0] - empty[0], SESSIONS),
    sessionInRedis: perOne(opened[1] - empty[1], SESSIONS),
    stream: perOne(listening - resident, SESSIONS),
    callerInRedis: perOne(counted, CALLERS),
  };
}

/** Agents that are defined, and have not called yet. */
async function agentsDefined({ uri, redisUrl }) {
  const few = await startMeasured({ uri, redis: redisUrl });
  const least = [await alive(few), await few.cpuSeconds()];
  await few.stop();
  const agents = named(AGENTS, 'agent', { tenantId: 'northside' });
  const many = await startMeasured({ uri, redis: redisUrl, agents, auth: keysOf(agents) });
  const most = [await alive(many), await many.cpuSeconds()];
  await many.stop();
  return {
    agentDefined: perOne(most[0] - least[0], AGENTS),
    /** Microseconds of CPU at the start and right after it. */
    agentStarted: perOne((most[1] - least[1]) * 1e6, AGENTS),
  };
}

/** A database of a thousand classes, with few and with many agents. */
async function classesKnown({ uri, redisUrl }) {
  const database = 'many';
  const client = await MongoClient.connect(uri);
  /** @type {import('mongodb').Collection<{ _id: string }>} */
  const schemas = client.db(database).collection('_SCHEMA');
  await schemas.insertMany(
    Array.from({ length: CLASSES }, (_, number) => ({
      _id: `Class${number}`,
      objectId: 'string',
      createdAt: 'date',
      updatedAt: 'date',
      orgId: 'string',
      ...Object.fromEntries(Array.from({ length: 10 }, (__, column) => [`column${column}`, 'string'])),
    })),
  );
  await client.close();
  const aliveWith = async (name, count) => {
    const agents = named(count, 'agent', { tenantId: 'northside' });
    const policy = { suppressMasterKeyWarning: true };
    const options = { uri, redis: redisUrl, agents, auth: keysOf(agents), database: { uri, name }, policy };
    const service = await startMeasured(options);
    const bytes = await alive(service);
    await service.stop();
    return bytes;
  };
  const none = [await aliveWith('none', 0), await aliveWith('none', ACTIVE)];
  const many = [await aliveWith(database, 0), await aliveWith(database, ACTIVE)];
  const agentAndClass = perOne(many[1] - many[0] - (none[1] - none[0]), ACTIVE * CLASSES);
  return {
    class: Math.max(0, perOne(many[0] - none[0], CLASSES) - CONFIGURED * agentAndClass),
    agentAndClass,
  };
}

/** Bytes. */
export async function memories(world) {
  return {
    ...(await sessionsAndStreams(world)),
    ...(await agentsDefined(world)),
    ...(await classesKnown(world)),
  };
}
