import { Logger } from '@nestjs/common';
import { map } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RegistryChanges } from './tool-registry.js';

const failing = () => {
  throw new Error('no');
};
const uncaught: unknown[] = [];
const keep = (error: unknown) => uncaught.push(error);
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

afterEach(() => {
  process.off('uncaughtException', keep);
  vi.restoreAllMocks();
});

describe('changes of a registry', () => {
  it.each([
    ['a function', (feed: RegistryChanges) => feed.changes.subscribe(failing)],
    ['an observer', (feed: RegistryChanges) => feed.changes.subscribe({ next: failing })],
    ['an operator', (feed: RegistryChanges) => feed.changes.pipe(map(failing)).subscribe()],
    ['behind an operator', (feed: RegistryChanges) => feed.changes.pipe(map(String)).subscribe(failing)],
    [
      'an error handler that fails as well',
      (feed: RegistryChanges) => feed.changes.pipe(map(failing)).subscribe({ error: failing }),
    ],
  ])('end neither the process nor the others when a subscriber throws: %s', async (_, subscribe) => {
    uncaught.length = 0;
    process.on('uncaughtException', keep);
    const logged = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const feed = new RegistryChanges('tools');
    let received = 0;
    subscribe(feed);
    feed.changes.subscribe(() => (received += 1));
    feed.announce();
    feed.announce();
    await settled();
    expect(received).toBe(2);
    expect(uncaught).toEqual([]);
    expect(logged).toHaveBeenCalledWith(expect.stringContaining('tools'));
  });

  it('reach nobody who unsubscribed, behind operators neither', () => {
    const feed = new RegistryChanges('tools');
    const received: string[] = [];
    const plain = feed.changes.subscribe(() => received.push('plain'));
    const mapped = feed.changes.pipe(map(() => 'mapped')).subscribe((value) => received.push(value));
    feed.announce();
    plain.unsubscribe();
    mapped.unsubscribe();
    feed.announce();
    expect(received).toEqual(['plain', 'mapped']);
  });
});
