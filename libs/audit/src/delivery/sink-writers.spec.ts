import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AuditChain, RecordSeal } from '../chain/audit-chain.js';
import { RecordingLog, createRecords, SwitchableDelivery, temporaryFolder } from './deliveries.fixture.js';
import { RecordNotKept } from './record-delivery.js';
import { SpoolFile } from './record-files.js';
import { BufferingSinkWriter, RefusingSinkWriter } from './sink-writers.js';

const WAITING = { timeout: 20_000, interval: 10 };
const lines = (records: readonly { line: string }[]) => records.map(({ line }) => line);

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

describe('a place that refuses', () => {
  it('lets everybody wait until their record is kept, in order', async () => {
    const place = new SwitchableDelivery();
    const writer = new RefusingSinkWriter(place, 1_000, new RecordingLog());
    await writer.open();
    const records = createRecords(10);
    await Promise.all(records.map((record) => writer.keep(record)));
    expect(place.taken).toEqual(records);
    expect(writer.state).toBe('up');
    await writer.close(1_000);
    expect(place.closed).toBe(true);
  });

  it('is down from the first failure on, rejects those who wait, and keeps its records for later', async () => {
    const place = new SwitchableDelivery();
    const log = new RecordingLog();
    const writer = new RefusingSinkWriter(place, 1_000, log);
    await writer.open();
    place.isUp = false;
    const records = createRecords(5);
    const outcomes = await Promise.allSettled(records.map((record) => writer.keep(record)));
    expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(writer.state).toBe('down');
    await expect(writer.keep(createRecords(1)[0]!)).rejects.toBeInstanceOf(RecordNotKept);
    place.isUp = true;
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    expect(place.taken).toHaveLength(6);
    expect(place.taken.slice(0, 5)).toEqual(records);
    expect(log.lines).toHaveLength(2);
    await writer.close(1_000);
  });

  it('is down while an attempt hangs, and never makes a second one beside it', async () => {
    const place = new SwitchableDelivery();
    let release = () => {};
    place.gate = new Promise((resolve) => (release = resolve));
    const writer = new RefusingSinkWriter(place, 20, new RecordingLog());
    const [record] = createRecords(1);
    await expect(writer.keep(record!)).rejects.toBeInstanceOf(RecordNotKept);
    expect(writer.state).toBe('down');
    release();
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    expect(place.taken).toEqual([record]);
    await writer.close(1_000);
  });

  it('takes records again two seconds after it is back, however long it was away', async () => {
    vi.useFakeTimers();
    try {
      const place = new SwitchableDelivery();
      const writer = new RefusingSinkWriter(place, 1_000, new RecordingLog());
      await writer.open();
      place.isUp = false;
      await expect(writer.keep(createRecords(1)[0]!)).rejects.toBeInstanceOf(RecordNotKept);
      await vi.advanceTimersByTimeAsync(600_000);
      expect(writer.state).toBe('down');
      place.isUp = true;
      await vi.advanceTimersByTimeAsync(2_000);
      expect(writer.state).toBe('up');
      await writer.close(1_000);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that is away at the start is down, and comes up by itself', async () => {
    const place = new SwitchableDelivery();
    place.isUp = false;
    const writer = new RefusingSinkWriter(place, 1_000, new RecordingLog());
    expect(await writer.open()).toBeNull();
    expect(writer.state).toBe('down');
    place.isUp = true;
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    await writer.close(1_000);
  });
});

describe('a place that buffers', () => {
  const createWriter = (place: SwitchableDelivery, log = new RecordingLog(), maxBytes = 1_000_000) =>
    new BufferingSinkWriter(place, 1_000, new SpoolFile(folder.at('spool.jsonl'), maxBytes), log);

  it('lets nobody wait while it takes records', async () => {
    const place = new SwitchableDelivery();
    const writer = createWriter(place);
    await writer.open();
    const records = createRecords(8);
    expect(records.map((record) => writer.keep(record))).toEqual(Array(8).fill(undefined));
    await vi.waitFor(() => expect(place.taken).toEqual(records), WAITING);
    await writer.close(1_000);
  });

  it('puts records on disk while it is away, where only this user reads them, and delivers them in order', async () => {
    const place = new SwitchableDelivery();
    const writer = createWriter(place);
    await writer.open();
    place.isUp = false;
    const records = createRecords(20);
    for (const record of records.slice(0, 10)) void writer.keep(record);
    await vi.waitFor(() => expect(writer.state).toBe('buffering'), WAITING);
    for (const record of records.slice(10)) await writer.keep(record);
    expect(readFileSync(folder.at('spool.jsonl'), 'utf8').split('\n').slice(0, -1)).toEqual(lines(records));
    place.isUp = true;
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    expect(lines(place.taken)).toEqual(lines(records));
    expect(readFileSync(folder.at('spool.jsonl'), 'utf8')).toBe('');
    await writer.close(1_000);
  });

  it('never refuses because a destination is slow: more than fits into memory waits on disk', async () => {
    const slow = Object.assign(new SwitchableDelivery(), { batch: 1_000 });
    let open = () => undefined as void;
    slow.gate = new Promise((resolve) => (open = resolve));
    const log = new RecordingLog();
    const spool = new SpoolFile(folder.at('spool.jsonl'), 100_000_000);
    const writer = new BufferingSinkWriter(slow, 600_000, spool, log);
    await writer.open();
    const records = createRecords(12_000);
    const states = new Set<string>();
    for (let at = 0; at < records.length; at += 500) {
      await Promise.all(records.slice(at, at + 500).map(async (record) => writer.keep(record)));
      states.add(writer.state);
    }
    expect([...states]).toEqual(['up', 'buffering']);
    expect(log.lines.join()).toContain('they wait for too long');
    open();
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    expect(lines(slow.taken)).toEqual(lines(records));
    await writer.close(1_000);
  });

  it('delivers after a restart what waited on disk, before anything new', async () => {
    const away = new SwitchableDelivery();
    away.isUp = false;
    const before = createWriter(away);
    await before.open();
    const records = createRecords(6);
    for (const record of records.slice(0, 4)) await before.keep(record);
    await before.close(10);
    const place = new SwitchableDelivery();
    const log = new RecordingLog();
    const after = createWriter(place, log);
    await after.open();
    for (const record of records.slice(4)) await after.keep(record);
    await vi.waitFor(() => expect(lines(place.taken)).toEqual(lines(records)), WAITING);
    expect(log.lines[0]).toContain('delivered first');
    await after.close(1_000);
  });

  it('survives a line that a crash cut off, and one that is no record', async () => {
    const records = createRecords(2);
    writeFileSync(folder.at('spool.jsonl'), `${records[0]!.line}\nnonsense\n${records[1]!.line}\n{"cut":`);
    const place = new SwitchableDelivery();
    const log = new RecordingLog();
    const writer = createWriter(place, log);
    await writer.open();
    await vi.waitFor(() => expect(lines(place.taken)).toEqual(lines(records)), WAITING);
    expect(log.lines.join()).toContain('lines of the buffer that are no records: 1');
    await writer.close(1_000);
  });

  it('has a place again for each refusal that waited, also where its line on disk was lost', async () => {
    const place = new SwitchableDelivery();
    place.isUp = false;
    const log = new RecordingLog();
    const writer = createWriter(place, log);
    await writer.open();
    const chain = new AuditChain(new RecordSeal());
    const refuse = () =>
      chain.append({ type: 'tool_call', at: '2026-01-01T00:00:00.000Z', principal: 'p', success: false });
    const refusals = Array.from({ length: 500 }, refuse);
    await Promise.all(refusals.map(async (refusal) => writer.keep(refusal, false)));
    await vi.waitFor(
      () => expect(readFileSync(folder.at('spool.jsonl'), 'utf8')).toContain(refusals.at(-1)!.line),
      WAITING,
    );
    expect(writer.isExcess(refuse().record)).toBe(true);
    const { length } = readFileSync(folder.at('spool.jsonl'));
    writeFileSync(folder.at('spool.jsonl'), `${'x'.repeat(length - 1)}\n`);
    place.isUp = true;
    await vi.waitFor(() => expect(writer.state).toBe('up'), WAITING);
    expect(place.taken).toEqual([]);
    expect(log.lines.join()).toContain('lines of the buffer that are no records: 1');
    expect(writer.isExcess(refuse().record)).toBe(false);
    await writer.close(1_000);
  });

  it('is down when the buffer is full, and when the disk cannot be written', async () => {
    const place = new SwitchableDelivery();
    place.isUp = false;
    const full = createWriter(place, new RecordingLog(), 1_000);
    await full.open();
    for (const record of createRecords(6)) await full.keep(record);
    expect(full.state).toBe('down');
    await full.close(10);

    writeFileSync(folder.at('a-file'), '');
    const spool = new SpoolFile(folder.at('a-file/spool.jsonl'), 1_000);
    const diskless = new BufferingSinkWriter(place, 1_000, spool, new RecordingLog());
    await diskless.open();
    expect(diskless.state).toBe('down');
    await expect(diskless.keep(createRecords(1)[0]!)).rejects.toBeInstanceOf(RecordNotKept);
    await diskless.close(10);
  });

  it('loses nothing and changes no order, whenever it goes and comes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), async (ups) => {
        const own = temporaryFolder();
        const place = new SwitchableDelivery();
        const spool = new SpoolFile(own.at('spool.jsonl'), 4_000);
        const writer = new BufferingSinkWriter(place, 1_000, spool, new RecordingLog());
        await writer.open();
        const records = createRecords(ups.length);
        for (const [index, up] of ups.entries()) {
          place.isUp = up;
          await Promise.resolve(writer.keep(records[index]!)).catch(() => undefined);
          if (index % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        place.isUp = true;
        await vi.waitFor(() => expect(lines(place.taken)).toEqual(lines(records)), WAITING);
        await writer.close(1_000);
        own.remove();
      }),
      { numRuns: 15 },
    );
  });
});
