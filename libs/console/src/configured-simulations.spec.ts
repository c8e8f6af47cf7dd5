import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ConfiguredSimulations, type SimulationsOptions, type Versioned } from './configured-simulations.js';

function simulationsOf(count: number, changed: readonly object[] = []) {
  const changes = new Subject<void>();
  const version = (number: number) =>
    ({ number, loadedAt: new Date(0), policy: { version: `v${number}` } }) as unknown as Versioned;
  const versions = { current: version(1), changes };
  const compared: string[] = [];
  const simulations = new ConfiguredSimulations({
    versions: versions as unknown as SimulationsOptions<Versioned>['versions'],
    open: () => Promise.resolve({ close: () => Promise.resolve() } as never),
    compare: (before, after) => {
      compared.push(`${before.number} ${after.number}`);
      return Promise.resolve({ changes: changed as never, classesLeftOut: 0 });
    },
    findEarlier: () => Promise.resolve(null),
    rehearse: null,
    identityOf: () => undefined,
    methods: {} as never,
  });
  for (let number = 2; number <= count; number += 1) {
    versions.current = version(number);
    changes.next();
  }
  return { simulations, compared };
}

describe('changes between versions', () => {
  it('are worked out once for each pair, in whatever order they are asked for', async () => {
    const { simulations, compared } = simulationsOf(7);
    const numbers = [3, 4, 5, 6, 7];
    for (let round = 0; round < 3; round += 1)
      for (const from of numbers) for (const to of numbers) await simulations.changes(from, to);
    expect(compared).toHaveLength(10);
    expect(new Set(compared).size).toBe(10);
    await simulations.onModuleDestroy();
  });

  it('are those of a later version than the one before, and none of a version with itself', async () => {
    const { simulations, compared } = simulationsOf(3);
    expect(await simulations.changes(3, 1)).toBeUndefined();
    expect(await simulations.changes(9, undefined)).toBeUndefined();
    expect(await simulations.changes(3, undefined)).toMatchObject({ from: 3, to: 3, changes: [] });
    expect(compared).toEqual([]);
    expect(await simulations.changes(undefined, undefined)).toMatchObject({ from: 2, to: 3 });
    expect(compared).toEqual(['2 3']);
    await simulations.onModuleDestroy();
  });
});

describe('whether the served version widens access', () => {
  it.each([
    [[{ effect: 'gained' }], true],
    [[{ effect: 'lost' }], false],
    [[], false],
  ])('is known at the first question after a reload: %j', async (changed, widened) => {
    const { simulations } = simulationsOf(2, changed);
    expect(await simulations.widened()).toBe(widened);
    await simulations.onModuleDestroy();
  });

  it('is not known of the first version', async () => {
    const { simulations } = simulationsOf(1);
    expect(await simulations.widened()).toBeNull();
    await simulations.onModuleDestroy();
  });
});
