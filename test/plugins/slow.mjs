import { Module } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Tool } from 'parley';

const input = { type: 'object', properties: { seconds: { type: 'number' } }, required: ['seconds'] };

/** Calls that take as long as they are told to, and say in which process they ended. */
class Slow {
  async read({ seconds }, call) {
    await pause(seconds * 1000, undefined, { signal: call.signal });
    return { pid: process.pid, posts: await call.records.count('Post') };
  }

  async write({ seconds }, call) {
    await pause(seconds * 1000, undefined, { signal: call.signal });
    return { pid: process.pid };
  }
}
const declare = (method, options) =>
  Tool(options)(Slow.prototype, method, Object.getOwnPropertyDescriptor(Slow.prototype, method));
declare('read', {
  name: 'slow_read',
  description: 'Counts after a while.',
  task: 'optional',
  input,
  output: { type: 'object' },
});
declare('write', {
  name: 'slow_write',
  description: 'Changes something after a while.',
  permission: 'write',
  task: 'optional',
  input,
  output: { type: 'object' },
});

export default class SlowModule {}
Module({ providers: [Slow] })(SlowModule);
