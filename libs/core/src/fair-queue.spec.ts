import { describe, expect, it } from 'vitest';
import { FairQueue, NoCapacityError } from './limits.js';

const turnsOf = (more: object = {}) =>
  new FairQueue({ atOnce: 2, waitingPerKey: 3, timeout: 60_000, ...more });

/** Work that ends when the test ends it, and the order in which work began. */
function workshop(turns: FairQueue) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (key: string, name: string, signal?: AbortSignal) =>
    turns.run(
      key,
      () =>
        new Promise<string>((resolve) => {
          begun.push(name);
          ends.set(name, () => resolve(name));
        }),
      signal,
    );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const end = async (name: string) => {
    ends.get(name)?.();
    await settle();
  };
  return { begun, start, end, settle };
}

describe('fair turns', () => {
  it('serve the keys that wait in turn, whichever has more waiting', async () => {
    const { begun, start, end, settle } = workshop(turnsOf());
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void start('a', name);
    void start('b', 'b1');
    void start('c', 'c1');
    await settle();
    expect(begun).toEqual(['a1', 'a2']);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'a4']) await end(name);
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'a5']);
  });

  it('keep room for others where one key may have only a part', async () => {
    const { begun, start, settle } = workshop(turnsOf({ perKey: 1 }));
    for (const name of ['a1', 'a2', 'a3']) void start('a', name);
    void start('b', 'b1');
    await settle();
    expect(begun).toEqual(['a1', 'b1']);
  });

  it('refuse what more than may wait, and say whose work it is', async () => {
    const { start } = workshop(turnsOf({ perKey: 1, waiting: 4 }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void start('a', name);
    await expect(start('a', 'a5')).rejects.toMatchObject({ own: true });
    for (const key of ['b', 'c']) void start(key, `${key}1`);
    await expect(start('d', 'd1')).rejects.toMatchObject({ own: false });
  });

  it('refuse what waited too long, and serve the rest as if it had not been there', async () => {
    const { begun, start, end, settle } = workshop(turnsOf({ atOnce: 1, timeout: 5 }));
    void start('a', 'a1');
    await expect(start('a', 'a2')).rejects.toBeInstanceOf(NoCapacityError);
    await end('a1');
    void start('b', 'b1');
    await settle();
    expect(begun).toEqual(['a1', 'b1']);
  });

  it('forget what was cancelled while it waited', async () => {
    const { begun, start, end } = workshop(turnsOf({ atOnce: 1 }));
    const gone = new AbortController();
    void start('a', 'a1');
    const waiting = start('b', 'b1', gone.signal);
    gone.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    void start('c', 'c1');
    await end('a1');
    expect(begun).toEqual(['a1', 'c1']);
  });

  it('give a turn back when the work fails', async () => {
    const turns = turnsOf({ atOnce: 1 });
    await expect(turns.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    await expect(turns.run('a', () => Promise.resolve('next'))).resolves.toBe('next');
  });
});
