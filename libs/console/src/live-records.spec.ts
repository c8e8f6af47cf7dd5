import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuditRecord } from '#audit';
import { type BusMessage, ProcessMessageBus } from '#state';
import { type LiveBatch, LiveRecords, toShownRecord } from './live-records.js';

const call = (tool: string): AuditRecord =>
  ({
    at: '2026-01-01T00:00:00.000Z',
    tool,
    args_keys: ['class_name'],
    success: true,
    principal: 'p',
  }) as unknown as AuditRecord;

class RecordingBus extends ProcessMessageBus {
  readonly heard: BusMessage[] = [];
  override publish(topic: string, message: BusMessage): Promise<void> {
    if (topic === 'console.records') this.heard.push(message);
    return super.publish(topic, message);
  }
}

function replicas() {
  const bus = new RecordingBus();
  const now = () => performance.now();
  const settings = { maxRecords: 3 };
  return { bus, one: new LiveRecords(bus, settings, now), two: new LiveRecords(bus, settings, now) };
}
const listTools = (batches: readonly LiveBatch[]) =>
  batches
    .flatMap(({ records }) => records.map(({ tool }) => String(tool)))
    .sort((a, b) => a.localeCompare(b));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);

describe('live records', () => {
  it('are not sent while nobody watches', async () => {
    const { bus, one } = replicas();
    one.record(call('a'));
    await pass(60_000);
    expect(bus.heard).toEqual([]);
    expect(one.isWatched).toBe(false);
  });

  it('of every replica reach a reader on any replica', async () => {
    const { one, two } = replicas();
    const seen: LiveBatch[] = [];
    const watching = one.watch().subscribe((batch) => seen.push(batch));
    await pass(10);
    one.record(call('a'));
    two.record(call('b'));
    await pass(1_000);
    expect(listTools(seen)).toEqual(['a', 'b']);
    expect(new Set(seen.map(({ replica }) => replica)).size).toBe(2);
    watching.unsubscribe();
  });

  it('have the cause of a refusal, and none of an error, which may quote a value', async () => {
    const { one } = replicas();
    const seen: LiveBatch[] = [];
    const watching = one.watch().subscribe((batch) => seen.push(batch));
    for (const error_code of ['rate_limited', 'parse_error', 'internal_error'] as const)
      one.record({ ...call(error_code), success: false, error_code, cause: 'dup key: { email: "a@b.c" }' });
    await pass(1_000);
    const causes = seen.flatMap(({ records }) => records.map(({ tool, cause }) => [tool, cause]));
    expect(causes).toEqual([
      ['rate_limited', 'dup key: { email: "a@b.c" }'],
      ['parse_error', undefined],
      ['internal_error', undefined],
    ]);
    watching.unsubscribe();
  });

  it('are sent for as long as somebody watches, and end soon after that', async () => {
    const { bus, one, two } = replicas();
    const watching = one.watch().subscribe();
    await pass(60_000);
    expect(two.isWatched).toBe(true);
    watching.unsubscribe();
    await pass(15_001);
    expect(two.isWatched).toBe(false);
    const before = bus.heard.length;
    two.record(call('a'));
    await pass(1_000);
    expect(bus.heard.length).toBe(before);
  });

  it('are bounded: what is too many is counted and not sent', async () => {
    const { one } = replicas();
    const seen: LiveBatch[] = [];
    const watching = one.watch().subscribe((batch) => seen.push(batch));
    await pass(10);
    for (let at = 0; at < 1_000; at++) one.record(call(`t${at}`));
    await pass(1_000);
    expect(seen.map(({ records, missed }) => [records.length, missed])).toEqual([[3, 997]]);
    watching.unsubscribe();
  });

  it('that are none are not shown', async () => {
    const { bus, one } = replicas();
    const seen: LiveBatch[] = [];
    const watching = one.watch().subscribe((batch) => seen.push(batch));
    for (const message of [{}, { replica: 1 }, { replica: 'x', records: 'y', missed: 0 }])
      await bus.publish('console.records', message);
    await pass(1_000);
    expect(seen).toEqual([]);
    watching.unsubscribe();
  });
});

describe('a shown record', () => {
  it('is cut, and has nothing that nobody said it should have', () => {
    const shown = toShownRecord({
      type: 'tool_call',
      ...call('x'.repeat(10_000)),
      args_keys: Array.from({ length: 100 }, () => 'k'.repeat(1_000)),
      filters: { Post: ['secret'] },
      later_addition: 'value',
    } as never);
    expect(String(shown['tool']).length).toBe(301);
    expect((shown['args_keys'] as string[]).length).toBe(32);
    expect(shown).not.toHaveProperty('filters');
    expect(shown).not.toHaveProperty('later_addition');
  });
});
