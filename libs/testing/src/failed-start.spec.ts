import { Injectable } from '@nestjs/common';
import { Tool } from '@parley/server';
import { describe, expect, it, vi } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';

class Absent {}

@Injectable()
class LonelyTools {
  constructor(readonly absent: Absent) {}

  @Tool({ name: 'lonely', description: 'Needs what nobody provides.' })
  run() {
    return {};
  }
}
Reflect.defineMetadata('design:paramtypes', [Absent], LonelyTools);

const openResources = () =>
  process.getActiveResourcesInfo().filter((kind) => /Pipe|TCP|Timeout|Immediate/.test(kind)).length;

describe('A testing application that does not start', () => {
  it.each([
    ['a dependency that nobody provides', { tools: [LonelyTools] }, /Absent/],
    [
      'a policy that the database does not fit',
      { policy: { classes: { Song: { fields: ['titel'] } } } },
      /titel/,
    ],
  ])('leaves nothing open that keeps the process alive: %s', async (_, options, reason) => {
    const fail = () =>
      expect(
        createTestingApplication({ seed: { objects: { Song: [{ title: 'Tea' }] } }, ...options }),
      ).rejects.toThrow(reason);
    // The first start of a process opens what stays.
    await fail();
    const before = openResources();
    await fail();
    await vi.waitFor(() => expect(openResources()).toBeLessThanOrEqual(before), { timeout: 5_000 });
  });
});
