// What a service sends to its database and to Redis, counted outside of it.
import { connect, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { BSON } from 'mongodb';
import { listen } from '../../tools/free-port.mjs';

const OP_MSG = 2013;
const HEADER = 16;
/** Of the driver itself: they come with time and with connections, not with requests. */
const OF_THE_DRIVER = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'endSessions', 'buildInfo']);

/** Calls `message` with each whole message of the wire protocol. */
function messagesOf(message) {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0);
      message(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
}

/** The name of the command of a message; undefined for an answer. */
function commandOf(message) {
  if (message.readInt32LE(12) !== OP_MSG || message[HEADER + 4] !== 0) return undefined;
  const [name] = Object.keys(
    BSON.deserialize(message.subarray(HEADER + 5, HEADER + 5 + message.readInt32LE(HEADER + 5))),
  );
  return name;
}

/** A proxy in front of a database that counts commands, and the bytes of commands and answers. */
export async function countingDatabase(target) {
  const { hostname, port } = new URL(target.replace('mongodb:', 'http:'));
  const counts = { commands: {}, sent: 0, received: 0 };
  const sockets = new Set();
  const server = createServer((client) => {
    const database = connect(Number(port), hostname);
    for (const socket of [client, database]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        database.destroy();
      });
    }
    let ofTheDriver = false;
    const count = messagesOf((message) => {
      const name = commandOf(message);
      ofTheDriver = name === undefined || OF_THE_DRIVER.has(name);
      if (ofTheDriver) return;
      counts.commands[name] = (counts.commands[name] ?? 0) + 1;
      counts.sent += message.length;
    });
    client.on('data', (chunk) => {
      database.write(chunk);
      count(chunk);
    });
    database.on('data', (chunk) => {
      client.write(chunk);
      if (!ofTheDriver) counts.received += chunk.length;
    });
  });
  return {
    // A replica set would name the address of the database itself.
    url: `mongodb://127.0.0.1:${await listen(server)}/?directConnection=true`,
    counts: () => structuredClone(counts),
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Counters of a Redis server, and the commands that it executes while it is watched. */
export async function countingRedis(url) {
  const redis = new Redis(url);
  const info = async (section) =>
    Object.fromEntries(
      (await redis.info(section))
        .split('\r\n')
        .flatMap((line) => (line.includes(':') ? [line.split(':')] : [])),
    );
  return {
    redis,
    async counters() {
      const [stats, cpu, memory] = [await info('stats'), await info('cpu'), await info('memory')];
      return {
        cpu: Number(cpu.used_cpu_user) + Number(cpu.used_cpu_sys),
        bytes: Number(stats.total_net_input_bytes) + Number(stats.total_net_output_bytes),
        memory: Number(memory.used_memory),
      };
    },
    /** Commands that clients send while `work` runs, by name, and those that scripts run. */
    async watched(work) {
      const sent = {};
      let inScripts = 0;
      const monitor = await redis.monitor();
      monitor.on('monitor', (_time, [name], source) => {
        if (source === 'lua') inScripts += 1;
        else if (name.toLowerCase() !== 'monitor')
          sent[name.toLowerCase()] = (sent[name.toLowerCase()] ?? 0) + 1;
      });
      await work();
      // Lines of commands that were answered may still be on their way.
      await new Promise((resolve) => setTimeout(resolve, 100));
      monitor.disconnect();
      return { sent, inScripts };
    },
    close: () => redis.disconnect(),
  };
}

export const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);
