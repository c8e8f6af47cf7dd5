import { Module } from '@nestjs/common';
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Tool } from '@parley/server';

const input = { type: 'object', properties: { until: { type: 'string' } }, required: ['until'] };

/** Calls that last until a file is there. */
class Slow {
  async read({ until }, call) {
    writeFileSync(`${until}.begun`, '');
    while (!existsSync(until)) await pause(20, undefined, { signal: call.signal });
    return { posts: await call.records.count('Post') };
  }

  async write({ until }, call) {
    writeFileSync(`${until}.begun`, '');
    while (!existsSync(until)) await pause(20, undefined, { signal: call.signal });
    return { done: true };
  }
}
const declare = (method, options) =>
  Tool(options)(Slow.prototype, method, Object.getOwnPropertyDescriptor(Slow.prototype, method));
declare('read', {
  name: 'slow_read',
  description: 'Counts after a while.',
  task: 'optional',
  timeout: 120,
  input,
  output: { type: 'object' },
});
declare('write', {
  name: 'slow_write',
  description: 'Changes something after a while.',
  permission: 'write',
  task: 'optional',
  timeout: 120,
  input,
  output: { type: 'object' },
});

export default class SlowModule {}
Module({ providers: [Slow] })(SlowModule);
