// A mixed load of complete conversations, and the memory of the service under it.
import http from 'node:http';
import { Conversation } from './peers/conversation.mjs';
import { residentMegabytes } from './processes.mjs';
import { HEADERS, startDatabase, startParley } from './works.mjs';

const LOOKS = 12;
/** More than one caller's share of the database queue (10): what waits takes memory as well. */
const CLIENTS = 16;

const where = { format: 'vinyl' };
const tool = (name, args) => ['tools/call', { name, arguments: { class_name: 'Listing', ...args } }];
/** What one client asks after the other; the last is refused. */
const REQUESTS = [
  ['tools/list', {}],
  tool('query_class', { where, limit: 10 }),
  tool('query_class', { order: '-price', limit: 100 }),
  tool('count_objects', { where }),
  tool('aggregate', { pipeline: [{ $group: { _id: '$format', n: { $sum: 1 } } }] }),
  tool('query_class', { where: { costPrice: 1 } }),
];

/**
 * Keeps all clients busy until `going` says no.
 * @param {string} url
 * @param {object} load
 * @param {() => boolean} load.going
 * @param {() => void} load.asked is called after each answer
 * @param {(error: Error) => void} [load.failed] is called with the error that ended a conversation; without it the load ends
 */
export async function conversations(url, { going, asked, failed }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
  async function client() {
    while (going()) {
      try {
        await converse();
      } catch (error) {
        if (!failed) throw error;
        failed(/** @type {Error} */ (error));
      }
    }
  }
  async function converse() {
    const talk = await new Conversation(url, agent, HEADERS).open();
    for (const [method, params] of REQUESTS) {
      await talk.ask(method, params);
      asked();
    }
    await talk.close();
  }
  await Promise.all(Array.from({ length: CLIENTS }, client));
  agent.destroy();
}

/**
 * @param {object} load
 * @param {number} load.minutes
 * @param {(reading: { minute: number, asked: number, megabytes: number }) => void} [load.told] is called with each of the twelve
 * @returns the range of the second half
 */
export async function soak({ minutes, told = () => {} }) {
  const database = await startDatabase();
  const service = await startParley({ uri: database.url });
  const began = performance.now();
  const ends = began + minutes * 60_000;
  let asked = 0;
  const looks = [];
  const looking = setInterval(
    () => {
      looks.push(residentMegabytes(service.pid));
      told({ minute: (performance.now() - began) / 60_000, asked, megabytes: looks.at(-1) });
    },
    (minutes * 60_000) / LOOKS,
  );
  await conversations(service.url, {
    going: () => performance.now() < ends,
    asked: () => (asked += 1),
  });
  clearInterval(looking);
  const half = looks.slice(looks.length >> 1);
  const milliseconds = ((await service.cpuSeconds()) / asked) * 1000;
  await service.stop();
  await database.stop();
  return { lowest: Math.min(...half), highest: Math.max(...half), asked, milliseconds, minutes };
}
