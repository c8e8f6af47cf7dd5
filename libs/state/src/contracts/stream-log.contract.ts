import { describe, expect, it } from 'vitest';
import type { StreamLog } from '../ports/sessions.js';
import type { MakePort } from './port-under-test.js';

/** Small limits, so that a test reaches them. */
export const TIGHT_LOG = { maxFrames: 4, maxSize: 40, ttl: 10_000 };

/** Limits of each owner. */
export const TIGHT_STREAMS = { entries: 2, weight: 40 };

/**
 * The contract of every stream log. `make` returns an empty log with `TIGHT_LOG` as its limits and `TIGHT_STREAMS` as its
 * share.
 */
export function streamLogContract(name: string, make: MakePort<StreamLog>): void {
  describe(`${name} keeps the contract of stream logs`, () => {
    const writeFrames = async (
      log: StreamLog,
      stream: string,
      frames: readonly string[],
    ): Promise<string[]> => {
      const entries: string[] = [];
      for (const frame of frames) entries.push(await log.append(stream, frame));
      return entries;
    };
    const framesAfter = async (log: StreamLog, stream: string, entry: string | undefined) =>
      (await log.after(stream, entry ?? ''))?.map(({ frame }) => frame);

    it('replays what followed an entry, oldest first, byte for byte', async () => {
      const { port } = await make();
      const [first] = await writeFrames(port, 's', ['a', 'data: "ä\u0001\n', 'c']);
      expect(await framesAfter(port, 's', first)).toEqual(['data: "ä\u0001\n', 'c']);
    });

    it('names each replayed frame as it was named when it was written', async () => {
      const { port } = await make();
      const [first, ...rest] = await writeFrames(port, 's', ['a', 'b', 'c']);
      const replayed = await port.after('s', first ?? '');
      expect(replayed?.map(({ entry }) => entry)).toEqual(rest);
    });

    it('replays nothing after the last entry', async () => {
      const { port } = await make();
      const entries = await writeFrames(port, 's', ['a', 'b']);
      expect(await port.after('s', entries[1] ?? '')).toEqual([]);
    });

    it('names no two frames of a stream alike, also after it was forgotten', async () => {
      const { port } = await make();
      const before = await writeFrames(port, 's', ['a', 'b']);
      await port.forget('s');
      const entries = [...before, ...(await writeFrames(port, 's', ['a']))];
      expect(new Set(entries).size).toBe(3);
      expect(await port.after('s', before[0] ?? '')).toBeUndefined();
    });

    it('keeps streams apart', async () => {
      const { port } = await make();
      const [mine] = await writeFrames(port, 'mine', ['a', 'b']);
      await writeFrames(port, 'yours', ['x', 'y']);
      expect(await framesAfter(port, 'mine', mine)).toEqual(['b']);
      expect(await port.after('unknown', mine ?? '')).toBeUndefined();
    });

    it('calls an entry that gave way unknown, not the beginning', async () => {
      const { port } = await make();
      const entries = await writeFrames(port, 's', ['a', 'b', 'c', 'd', 'e', 'f']);
      expect(await port.after('s', entries[1] ?? '')).toBeUndefined();
      expect(await framesAfter(port, 's', entries[2])).toEqual(['d', 'e', 'f']);
    });

    it('lets the oldest frames go when all together are too large', async () => {
      const { port } = await make();
      const entries = await writeFrames(port, 's', ['a'.repeat(15), 'b'.repeat(15), 'ä'.repeat(10)]);
      expect(await port.after('s', entries[0] ?? '')).toBeUndefined();
      expect(await framesAfter(port, 's', entries[1])).toEqual(['ä'.repeat(10)]);
      const later = await writeFrames(port, 's', ['d'.repeat(5)]);
      expect(await framesAfter(port, 's', entries[1])).toEqual(['ä'.repeat(10), 'd'.repeat(5)]);
      expect(later).toHaveLength(1);
    });

    it('keeps the newest frame however large it is', async () => {
      const { port } = await make();
      const [small] = await writeFrames(port, 's', ['a']);
      const [large] = await writeFrames(port, 's', ['b'.repeat(100)]);
      expect(await port.after('s', small ?? '')).toBeUndefined();
      expect(await port.after('s', large ?? '')).toEqual([]);
    });

    it('forgets the streams of an owner beyond its share, written to longest ago first, and nobody else’s', async () => {
      const { port, pass } = await make();
      const entries: Record<string, string> = {};
      const write = async (stream: string, owner: string, frame = 'a') => {
        entries[stream] ??= await port.append(stream, frame, owner);
        await pass(10);
      };
      await write('theirs', 'bob');
      for (const stream of ['one', 'two']) await write(stream, 'ada');
      await port.append('one', 'b', 'ada');
      await pass(10);
      await write('three', 'ada');
      expect(await framesAfter(port, 'two', entries['two'])).toBeUndefined();
      expect(await framesAfter(port, 'one', entries['one'])).toEqual(['b']);
      for (const stream of ['three', 'theirs'])
        expect(await framesAfter(port, stream, entries[stream])).toEqual([]);
      await write('heavy', 'ada', 'x'.repeat(40));
      for (const stream of ['one', 'three'])
        expect(await port.after(stream, entries[stream] ?? '')).toBeUndefined();
      for (const stream of ['heavy', 'theirs'])
        expect(await framesAfter(port, stream, entries[stream])).toEqual([]);
    });

    it('forgets a stream that nothing was added to for its time', async () => {
      const { port, pass } = await make();
      const [first] = await writeFrames(port, 's', ['a']);
      await pass(TIGHT_LOG.ttl * 0.6);
      await writeFrames(port, 's', ['b']);
      await pass(TIGHT_LOG.ttl * 0.6);
      expect(await framesAfter(port, 's', first)).toEqual(['b']);
      await pass(TIGHT_LOG.ttl * 0.6);
      expect(await port.after('s', first ?? '')).toBeUndefined();
    });

    it.each(['', '-', '+', '0', '1-1 COUNT 1', '(1-1', '99999999999999999999-1', '\n'])(
      'calls the forged entry %j unknown',
      async (forged) => {
        const { port } = await make();
        await writeFrames(port, 's', ['a', 'b']);
        expect(await port.after('s', forged)).toBeUndefined();
      },
    );
  });
}
