import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';

let folder: string;
let file: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'embedded-mongo-initial-'));
  file = join(folder, 'data');
  const server = await EmbeddedMongo.start({ dataFile: file });
  const client = await MongoClient.connect(server.uri);
  const rows = client.db('d').collection('rows');
  await rows.createIndex({ n: 1 }, { unique: true });
  await rows.insertMany([{ n: 1 }, { n: 2 }, { n: 3 }]);
  await rows.deleteOne({ n: 3 });
  await client.close();
  await server.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a server with initial data', () => {
  it('starts with the documents and indexes of the file, and leaves the file as it is', async () => {
    const before = readFileSync(file);
    const server = await EmbeddedMongo.start({ initialData: file });
    const client = await MongoClient.connect(server.uri);
    try {
      const rows = client.db('d').collection('rows');
      expect((await rows.find().sort({ n: 1 }).toArray()).map(({ n }) => n as unknown)).toEqual([1, 2]);
      await expect(rows.insertOne({ n: 2 })).rejects.toMatchObject({ code: 11_000 });
      await rows.insertOne({ n: 4 });
      expect(await rows.countDocuments()).toBe(3);
    } finally {
      await client.close();
      await server.close();
    }
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('does not start with a damaged file, not even with a torn end', async () => {
    const damaged = join(folder, 'damaged');
    appendFileSync(damaged, readFileSync(file).subarray(0, -3));
    await expect(EmbeddedMongo.start({ initialData: damaged })).rejects.toThrow('damaged');
    expect(readFileSync(damaged).length).toBe(readFileSync(file).length - 3);
  });

  it('does not also keep its data in a file', async () => {
    await expect(EmbeddedMongo.start({ initialData: file, dataFile: join(folder, 'other') })).rejects.toThrow(
      TypeError,
    );
  });
});
