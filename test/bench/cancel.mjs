// `npm run bench -- cancel [rounds]`: from cancelling a call to the end of its operation in the database, as the database reports
// it: when the client leaves, with a notification at the same replica, and with one at another replica (over Redis).
import http from 'node:http';
import { MongoClient } from 'mongodb';
import { startRedisServer } from '../../tools/redis-server.mjs';
import { median, printRows } from './load.mjs';
import { Conversation } from './peers/conversation.mjs';
import { OPEN, startDatabase, startParley } from './works.mjs';

const ROUNDS = Number(process.argv[2] ?? 10);
const CLASS = 'Listing';
const everyone = [{ $lookup: { from: CLASS, pipeline: [], as: 'other' } }, { $unwind: '$other' }];
const pipeline = [...everyone, ...everyone, ...everyone, ...everyone, { $count: 'n' }];
const call = { name: 'aggregate', arguments: { class_name: CLASS, pipeline } };

const database = await startDatabase();
const redis = await startRedisServer();
const replica = () =>
  startParley({
    uri: database.url,
    redis: { url: redis.url },
    agents: { bench: { rateLimit: 1_000_000 } },
    auth: [{ anonymous: true, agent: 'bench' }],
    policy: OPEN,
  });
const [one, two] = [await replica(), await replica()];
const client = await MongoClient.connect(database.url);

async function isRunning() {
  const { inprog } = await client.db('admin').command({ currentOp: 1 });
  return inprog.some(({ command }) => command?.aggregate === CLASS);
}

/** Milliseconds until the database runs it, or does not any more. */
async function until(wanted) {
  const began = performance.now();
  while ((await isRunning()) !== wanted) {
    if (performance.now() - began > 20_000) throw new Error(`it never ${wanted ? 'began' : 'ended'}`);
  }
  return performance.now() - began;
}

const agent = () => new http.Agent({ keepAlive: true });

/** One call, cancelled while it runs. @param cancel is given the conversation and its agent */
async function cancelled(cancel, round) {
  const own = agent();
  const talk = await new Conversation(one.url, own).open();
  const id = `long ${round}`;
  const answered = talk.post('tools/call', call, id).catch(() => null);
  await until(true);
  const [took] = await Promise.all([until(false), cancel({ talk, id, own })]);
  await answered;
  own.destroy();
  return took;
}

const notified =
  (url) =>
  async ({ talk, id }) => {
    const other = agent();
    const elsewhere = new Conversation(url, other, talk.headers);
    await elsewhere.post('notifications/cancelled', { requestId: id });
    other.destroy();
  };
/** @type {[way: string, cancel: (of: { talk: any, id: string, own: http.Agent }) => Promise<void>][]} */
const ways = [
  ['the client leaves', async ({ own }) => own.destroy()],
  ['a notification at the same replica', notified(one.url)],
  ['a notification at another replica', notified(two.url)],
];

/** @type {number[][]} */
const samples = ways.map(() => []);
for (let round = 0; round < ROUNDS; round += 1)
  for (const [at, [, cancel]] of ways.entries()) samples[at].push(await cancelled(cancel, round));
console.log(
  `From cancelling to the end in the database, medians of ${ROUNDS} (and the longest), Node ${process.version}`,
);
const shown = (milliseconds) => `${milliseconds.toFixed(0)} ms`;
printRows(ways.map(([way], at) => [way, shown(median(samples[at])), `(${shown(Math.max(...samples[at]))})`]));
await client.close();
for (const service of [one, two, database]) await service.stop();
await redis.close();
