import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { EmbeddedMongo, EmbeddedMongoOptions } from '../embedded-mongo.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

type Start = (options?: EmbeddedMongoOptions) => Promise<EmbeddedMongo>;

const lib = fileURLToPath(new URL('../..', import.meta.url));
const root = join(lib, '..', '..');
let built: string;
let start: Start;

// A worker thread runs JavaScript only, so the library is compiled for these rules, inside the checkout where its
// dependencies are found.
beforeAll(async () => {
  built = mkdtempSync(join(lib, '.built-'));
  const options =
    '--ignoreConfig --skipLibCheck --strict --target es2023 --module nodenext --types node'.split(' ');
  const files = ['src/index.ts', 'src/worker/server-worker.ts'].map((file) => join(lib, file));
  const run = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/typescript-native/bin/tsc'),
      ...options,
      '--rootDir',
      join(lib, 'src'),
      '--outDir',
      built,
      ...files,
    ],
    { encoding: 'utf8' },
  );
  if (run.status !== 0) throw new Error(run.stdout);
  const module = (await import(pathToFileURL(join(built, 'index.js')).href)) as {
    EmbeddedMongo: { start: Start };
  };
  start = (given) => module.EmbeddedMongo.start(given);
}, 60_000);
afterAll(() => rmSync(built, { recursive: true, force: true }));

describe('the built embedded database', () => {
  it('runs in a worker thread and serves drivers from there', async () => {
    const server = await start();
    expect(server.mode).toBe('worker');
    const client = await MongoClient.connect(server.uri);
    await client.db('d').collection('c').insertOne({ n: 1 });
    expect(await client.db('d').collection('c').countDocuments()).toBe(1);
    await client.close();
    await server.close();
    await server.close();
  });

  it('runs in this thread when told to', async () => {
    const server = await start({ inProcess: true });
    expect(server.mode).toBe('in-process');
    await server.close();
  });

  it.each([false, true])(
    'evaluates filters in the order of a seed, in this thread: %s',
    async (inProcess) => {
      const server = await start({ reorderFilters: 1, inProcess });
      const client = await MongoClient.connect(server.uri);
      try {
        const rows = client.db('order').collection('rows');
        await rows.insertMany([{ n: 0 }, { n: 1 }]);
        expect(await rows.countDocuments({ n: { $gte: 0 }, $or: [{ n: 0 }, { n: 1 }] })).toBe(2);
        const divided = { $expr: { $eq: [{ $divide: [1, '$n'] }, 1] } };
        await expect(rows.countDocuments({ $and: [{ n: 1 }, divided] })).rejects.toThrow('divide');
      } finally {
        await client.close();
        await server.close();
      }
    },
  );

  it('takes the seed from the environment, and nothing but a seed', async () => {
    vi.stubEnv('EMBEDDED_MONGO_REORDER_FILTERS', 'yes');
    try {
      await expect(start()).rejects.toThrow(TypeError);
      vi.stubEnv('EMBEDDED_MONGO_REORDER_FILTERS', '7');
      await (await start()).close();
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('says what is wrong with an address', async () => {
    await expect(start({ host: '0.0.0.0' })).rejects.toThrow(TypeError);
    const first = await start();
    await expect(start({ port: first.port })).rejects.toThrow('EADDRINUSE');
    await first.close();
  });

  it('has every write that was acknowledged as durable, also when its process is killed', async () => {
    const dataFile = join(built, 'killed.data');
    const script = `
      const { EmbeddedMongo } = await import(${JSON.stringify(pathToFileURL(join(built, 'index.js')).href)});
      const { MongoClient } = await import('mongodb');
      const server = await EmbeddedMongo.start({ dataFile: ${JSON.stringify(dataFile)} });
      const documents = (await MongoClient.connect(server.uri)).db('d').collection('c');
      for (let n = 0; n < 50; n += 1) await documents.insertOne({ n }, { writeConcern: { w: 1, journal: n % 10 === 9 } });
      process.kill(process.pid, 'SIGKILL');`;
    const killed = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      encoding: 'utf8',
    });
    if (killed.signal === null) throw new Error(killed.stderr);
    expect(killed.signal).toBe('SIGKILL');
    const server = await start({ dataFile });
    const client = await MongoClient.connect(server.uri);
    expect(await client.db('d').collection('c').countDocuments()).toBe(50);
    await client.close();
    await server.close();
  });

  it.each([1, 8])(
    'has every write that was answered with fsync always, killed amid the writes of %i clients',
    async (clients) => {
      const dataFile = join(built, `killed-${clients}.data`);
      const script = `
      const { EmbeddedMongo } = await import(${JSON.stringify(pathToFileURL(join(built, 'index.js')).href)});
      const server = await EmbeddedMongo.start({ dataFile: ${JSON.stringify(dataFile)}, fsync: 'always' });
      process.stdout.write(server.uri);`;
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: root });
      const uri = await new Promise<string>((resolve) =>
        child.stdout.once('data', (text) => resolve(String(text))),
      );
      const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 1000, retryWrites: false });
      const documents = client.db('d').collection('c');
      const answered: number[] = [];
      const writing = Array.from({ length: clients }, async (_, writer) => {
        for (let n = 0; ; n += 1) {
          const value = writer * 1_000_000 + n;
          await documents.insertOne({ n: value });
          await documents.updateOne({ n: value }, { $set: { changed: value } });
          answered.push(value);
          if (answered.length === 100) child.kill('SIGKILL');
        }
      });
      await Promise.allSettled(writing);
      await client.close();
      expect(answered.length).toBeGreaterThanOrEqual(100);
      const server = await start({ dataFile });
      const again = await MongoClient.connect(server.uri);
      const kept = await again
        .db('d')
        .collection('c')
        .find({ changed: { $exists: true } })
        .toArray();
      const values = new Set(kept.map(({ changed }) => changed as number));
      expect(answered.filter((value) => !values.has(value))).toEqual([]);
      await again.close();
      await server.close();
    },
  );
});
