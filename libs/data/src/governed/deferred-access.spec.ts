import { expect, it } from 'vitest';
import { refusals, Refused } from '#core';
import { DeferredRecords } from './deferred-access.js';

const refusing = () =>
  new DeferredRecords(() => Promise.reject<never>(new Refused(refusals.invalidArgument('no'))));

it('never ends the process over a refusal that a tool forgot to wait for', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', note);
  try {
    void refusing().find('Invoice');
    void Promise.reject(new Error('the rejection'));
    // Node emits the rejections of one turn before the next macrotask.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  } finally {
    process.off('unhandledRejection', note);
    for (const other of others) process.on('unhandledRejection', other);
  }
  expect(unhandled).toEqual([new Error('the rejection')]);
});

it('refuses those who wait', async () => {
  await expect(refusing().count('Invoice')).rejects.toBeInstanceOf(Refused);
});

it('opens again after an opening that failed, within the same call', async () => {
  let openings = 0;
  const records = new DeferredRecords(() => {
    openings += 1;
    return Promise.reject<never>(new Refused(refusals.invalidArgument(`attempt ${openings}`)));
  });
  await expect(records.count('Invoice')).rejects.toThrow('attempt 1');
  await expect(records.count('Invoice')).rejects.toThrow('attempt 2');
});
