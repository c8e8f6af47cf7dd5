import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WireFront } from '../../../libs/data-mongo/src/testing/wire-front.js';
import { callTool, type Service, startService, WRITES_OPEN } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const settings = {
  agents: { default: { permissions: 'admin', rateLimit: 1_000_000 } },
  policy: { unlistedClasses: 'allow', classes: { Note: { filters: { shown: true } } } },
};
const NOTES = 150;

describe('a service with database.fastReads', { timeout: 120_000 }, () => {
  let server: EmbeddedMongo;
  let front: WireFront;
  let client: MongoClient;
  let service: Service;
  beforeAll(async () => {
    server = await EmbeddedMongo.start();
    front = await WireFront.start(server.uri);
    client = await MongoClient.connect(server.uri);
    await client
      .db('shop')
      .collection<{ _id: string }>('_SCHEMA')
      .insertOne({
        _id: 'Note',
        objectId: 'string',
        createdAt: 'date',
        updatedAt: 'date',
        title: 'string',
        shown: 'boolean',
      } as { _id: string });
    const rows = Array.from({ length: NOTES }, (_, n) => ({
      _id: `n${n}`,
      title: `note ${n}`,
      shown: n % 2 === 0,
    }));
    await client.db('shop').collection<{ _id: string }>('Note').insertMany(rows);
    const database = { uri: front.uri, name: 'shop', fastReads: true };
    service = await startService({ config: { ...settings, database }, env: WRITES_OPEN });
    // Connections are opened by the first reads.
    await vi.waitUntil(async () => {
      await callTool(service, 'count_objects', { class_name: 'Note' });
      return front.fastConnections > 0;
    });
  });
  afterAll(async () => {
    await service.stop();
    await client.close();
    await front.close();
    await server.close();
  });

  it.each([
    ['query_class', { class_name: 'Note', where: { title: 'note 2' } }, ['find']],
    ['query_class', { class_name: 'Note', where: { title: 'note 3' } }, ['find']],
    ['count_objects', { class_name: 'Note' }, ['aggregate']],
    ['get_object', { class_name: 'Note', object_id: 'n4' }, ['find']],
    ['get_object', { class_name: 'Note', object_id: 'n5' }, ['find']],
    ['group_by', { class_name: 'Note', field: 'shown', operation: 'count' }, ['aggregate']],
    ['aggregate', { class_name: 'Note', pipeline: [{ $sort: { title: 1 } }, { $limit: 3 }] }, ['aggregate']],
  ])('answers %s %j with one command, under the filter of the class', async (tool, args, commands) => {
    front.sent.length = 0;
    const answer = JSON.stringify(await callTool(service, tool, args));
    const reads = front.sent.filter(({ command }) => 'find' in command || 'aggregate' in command);
    expect(reads.map(({ name, fast }) => [name, fast])).toEqual(commands.map((name) => [name, true]));
    const [read] = reads;
    expect(read?.command).toMatchObject({ comment: expect.any(String), maxTimeMS: expect.any(Number) });
    expect(answer).not.toMatch(/note \d*[13579]\b|\\?"n[13579]\\?"|isError\\?":true.*note/);
  });

  it('exports the rows that the filter leaves, and leaves no cursor', async () => {
    front.sent.length = 0;
    const exported = JSON.stringify(
      await callTool(service, 'export_data', { class_name: 'Note', limit: 75 }),
    );
    expect(exported).toContain('note 148');
    expect(exported).not.toContain('note 149');
    const { metrics } = await client.db('admin').command({ serverStatus: 1 });
    expect(metrics.cursor.open.total).toBe(0);
  });

  it('writes through the driver, and reads what it wrote', async () => {
    front.sent.length = 0;
    const made = await callTool(service, 'create_object', {
      class_name: 'Note',
      fields: { title: 'made', shown: true },
    });
    expect(JSON.stringify(made)).toContain('made');
    expect(front.sent.filter(({ name }) => name === 'insert').map(({ fast }) => fast)).toEqual([false]);
    const found = await callTool(service, 'query_class', { class_name: 'Note', where: { title: 'made' } });
    expect(JSON.stringify(found)).toContain('made');
  });

  it('says at the start, and in the doctor, why the reads of a connection string stay those of the driver', async () => {
    const database = { uri: `${front.uri}&compressors=zlib`, name: 'shop', fastReads: true };
    const other = await startService({ config: { ...settings, database } });
    front.sent.length = 0;
    await callTool(other, 'count_objects', { class_name: 'Note' });
    const because = "every read is the driver's, because the connection string has compressors";
    expect(other.output().stderr + other.output().stdout).toContain(`database.fastReads: ${because}`);
    await other.stop();
    const folder = makeFolder('fast-reads');
    writeFileSync(join(folder, 'parley.yaml'), stringify({ ...settings, database }));
    const { stdout } = await runCommand(['doctor'], '', { cwd: folder });
    expect(stdout).toContain('mongodb.fast_reads');
    expect(stdout).toContain(because);
  });
});
