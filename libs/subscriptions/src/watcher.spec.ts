import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { firstValueFrom, Observable, Subject, type Subscriber } from 'rxjs';
import { Agent, compileAgentDefinition, McpRequest } from '#core';
import { ChangeSource, type RowView, type SourceEvent, SourceRefused, StoreError } from '#data';
import { type ChannelMember, Channels } from './channels.js';
import { Debouncer, Watcher } from './watcher.js';

describe('a debouncer', () => {
  const fired: string[] = [];
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    fired.length = 0;
  });
  afterEach(() => vi.useRealTimers());
  const debouncer = (interval = 250) => new Debouncer<string>(interval, (thing) => fired.push(thing));

  it('fires once for all touches within the interval, which later ones do not prolong', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(200);
    one.touch('a');
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(50);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual(['a']);
  });

  it('starts again with the first touch after it fired', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(250);
    one.touch('a');
    vi.advanceTimersByTime(249);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['a', 'a']);
  });

  it('keeps each thing its own interval, on one timer for all', () => {
    const one = debouncer();
    one.touch('a');
    vi.advanceTimersByTime(100);
    one.touch('b');
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(150);
    expect(fired).toEqual(['a']);
    vi.advanceTimersByTime(100);
    expect(fired).toEqual(['a', 'b']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not fire for what was cancelled, and leaves no timer behind', () => {
    const one = debouncer();
    one.touch('a');
    one.touch('b');
    one.cancel('a');
    one.cancel('never touched');
    vi.advanceTimersByTime(250);
    expect(fired).toEqual(['b']);
    one.touch('c');
    one.cancel('c');
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([0, -1])('fires on every touch with an interval of %d', (interval) => {
    const one = debouncer(interval);
    one.touch('a');
    one.touch('a');
    expect(fired).toEqual(['a', 'a']);
  });
});

/** A source that takes a watch, or refuses it for now. */
class UnsteadySource extends ChangeSource {
  available: boolean | null = true;
  refuses = false;
  asked = 0;
  answer: boolean | null = null;
  private subscriber: Subscriber<SourceEvent> | null = null;

  override async probe(): Promise<void> {
    await Promise.resolve();
    this.available ??= this.answer;
  }

  channel(): string {
    return 'unsteady';
  }

  news(): Observable<SourceEvent> {
    return new Observable((subscriber) => {
      this.asked += 1;
      if (this.refuses) return subscriber.error(new SourceRefused(new StoreError('unavailable')));
      this.subscriber = subscriber;
      return subscriber.next({ kind: 'listening' });
    });
  }

  change(): void {
    this.subscriber?.next({ kind: 'change', objectId: 'a', created: true });
  }

  lose(): void {
    this.subscriber?.error(new SourceRefused(new StoreError('unavailable')));
  }
}

describe('a watcher whose source is lost', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  async function createWatching() {
    const source = new UnsteadySource();
    const notified: string[] = [];
    const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'a' });
    const context = new McpRequest(agent);
    const view = { className: 'Post', key: 'v', everything: true } as RowView;
    const debouncer = new Debouncer<Watcher>(0, (watcher) => void watcher.settle());
    const watcher = await Watcher.open(
      { uri: 'parse://Post/count', className: 'Post', operation: 'count' },
      () => context,
      {
        views: { open: async () => view },
        channels: new Channels(() => [source]),
        debouncer,
        perChange: true,
      },
      { onUpdated: () => notified.push('updated'), onEnded: () => notified.push('ended') },
    );
    return { source, notified, watcher };
  }

  it('looks for one as long as there is none, reports once that changes may be missing, and goes on', async () => {
    const { source, notified, watcher } = await createWatching();
    source.refuses = true;
    source.lose();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(notified).toEqual([]);
    expect(source.asked).toBeGreaterThan(8);
    expect(source.asked).toBeLessThan(30);
    source.refuses = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(notified).toEqual(['updated']);
    source.change();
    await vi.advanceTimersByTimeAsync(0);
    expect(notified).toEqual(['updated', 'updated']);
    watcher.close();
  });

  it('waits for the answer of one that has not said yet whether it reports changes', async () => {
    const { source, notified, watcher } = await createWatching();
    source.available = null;
    source.lose();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(notified).toEqual([]);
    source.available = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(notified).toEqual(['updated']);
    source.available = false;
    source.lose();
    await vi.advanceTimersByTimeAsync(0);
    expect(notified).toEqual(['updated', 'ended']);
    watcher.close();
  });

  it('looks for none once it is closed', async () => {
    const { source, notified, watcher } = await createWatching();
    source.refuses = true;
    source.lose();
    await vi.advanceTimersByTimeAsync(1_000);
    watcher.close();
    const { asked } = source;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(source.asked).toBe(asked);
    expect(notified).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a source of which it is not known yet whether it reports changes', () => {
  const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'a' });
  const view = { className: 'Post', key: 'v', everything: true } as RowView;
  const member: ChannelMember = { wake: () => undefined, cutOff: () => undefined };
  const createSource = (answer: boolean | null) =>
    Object.assign(new UnsteadySource(), { available: null, answer });

  it('is asked before anybody is refused', async () => {
    const source = createSource(true);
    const channels = new Channels(() => [source]);
    await channels.assertCarried(agent, view);
    expect((await channels.join(agent, view, member)).key).toBe('unsteady');
  });

  it.each([
    [null, 'parse_error'],
    [false, 'access_denied'],
  ])('that answers %j refuses with %s', async (answer, code) => {
    const source = createSource(answer);
    const channels = new Channels(() => [source]);
    const refusal = { refusal: { code } };
    await expect(channels.assertCarried(agent, view)).rejects.toMatchObject(refusal);
    await expect(channels.join(agent, view, member)).rejects.toMatchObject(refusal);
  });
});

describe('watchers of several principals', () => {
  it('have their rows counted in turn: one principal with many views delays only its own', async () => {
    const channels = new Channels(() => [new UnsteadySource()]);
    const begun: string[] = [];
    const counted = new Subject<void>();
    const watch = (principal: string, className: string) => {
      const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal });
      const view: RowView = {
        className,
        schema: undefined,
        key: `${className} of ${principal}`,
        everything: false,
        declared: null,
        ownersOnly: false,
        holdsAny: () => Promise.resolve(false),
        size: async () => {
          begun.push(view.key);
          await firstValueFrom(counted);
          return 0;
        },
      };
      void Watcher.open(
        { uri: `parse://${className}/count`, className, operation: 'count' },
        () => new McpRequest(agent, { signal: new AbortController().signal }),
        {
          views: { open: () => Promise.resolve(view) },
          channels,
          debouncer: new Debouncer<Watcher>(1, () => undefined),
          perChange: false,
        },
        { onUpdated: () => undefined, onEnded: () => undefined },
      );
    };
    for (let one = 0; one < 50; one += 1) watch('crowd', `Class${one}`);
    await vi.waitFor(() => expect(begun.length).toBeGreaterThan(0));
    watch('ada', 'Post');
    watch('bob', 'Post');
    await vi.waitFor(() => {
      expect(begun).toContain('Post of ada');
      counted.next();
      expect(begun).toContain('Post of bob');
    });
    expect(begun.filter((key) => key.endsWith('of crowd')).length).toBeLessThan(30);
  });
});
