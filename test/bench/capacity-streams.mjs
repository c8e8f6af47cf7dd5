// What open listening streams cost, what a subscription costs, and what it costs to notify each of them of one change.
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { Client, insertRow } from './capacity-kinds.mjs';
import { median } from './load.mjs';
import { sumOf } from './wire-counts.mjs';

const OPEN_SECONDS = 20;
const CHANGES = 5;

/** @param base what the service uses in a second without any of this. @returns costs of one stream, subscription and notification */
export async function streams({ service, database, redis, uri }, base, count) {
  const client = new Client(service);
  const direct = await MongoClient.connect(uri);
  const sessions = [];
  for (let number = 0; number < count; number += 1) sessions.push(await client.session());
  let heard = 0;
  const open = [];
  for (const session of sessions) open.push(await client.listen(session, () => (heard += 1)));
  await pause(2000);

  // On a busy machine a few streams cost less than the noise.
  const cpu = async (seconds, from) =>
    Math.max(0, ((await service.cpuSeconds()) - from) * 1e6 - base.cpu * seconds);
  let from = await service.cpuSeconds();
  const { sent } = await redis.watched(() => pause(OPEN_SECONDS * 1000));
  const minutes = (count * OPEN_SECONDS) / 60;
  const minute = {
    cpu: Math.round((await cpu(OPEN_SECONDS, from)) / minutes),
    redisCommands: Number(
      Math.max(0, (sumOf(sent) - base.redisCommands * OPEN_SECONDS) / minutes).toFixed(2),
    ),
  };

  from = await service.cpuSeconds();
  let began = performance.now();
  const subscribing = await redis.watched(async () => {
    for (const session of sessions) await client.subscribe(session);
  });
  const subscription = {
    cpu: Math.round((await cpu((performance.now() - began) / 1000, from)) / count),
    redisCommands: Number((sumOf(subscribing.sent) / count).toFixed(2)),
  };

  await pause(1000);
  const told = [];
  let commands = 0;
  const before = sumOf(database.counts().commands);
  for (let change = 0; change < CHANGES; change += 1) {
    heard = 0;
    from = await service.cpuSeconds();
    began = performance.now();
    const watched = await redis.watched(async () => {
      await insertRow(direct.db('parley'));
      while (heard < count && performance.now() - began < 30_000) await pause(20);
    });
    if (heard < count) throw new Error(`${heard} of ${count} streams were told`);
    commands += sumOf(watched.sent) - (base.redisCommands * (performance.now() - began)) / 1000;
    told.push((await cpu((performance.now() - began) / 1000, from)) / count);
    await pause(500);
  }
  const inserted = CHANGES;
  const update = {
    cpu: Math.round(median(told)),
    redisCommands: Number(Math.max(0, commands / CHANGES / count).toFixed(2)),
    databaseCommands: Number(((sumOf(database.counts().commands) - before - inserted) / CHANGES).toFixed(1)),
  };
  for (const stream of open) stream.close();
  client.close();
  await direct.close();
  return { count, minute, subscription, update };
}
