import { Module } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Tool } from '@parley/server';

/** A call that lasts as long as it is told to. */
class Sleeping {
  async sleep({ seconds }, call) {
    await pause(seconds * 1000, undefined, { signal: call.signal });
    return { slept: seconds };
  }
}
Tool({
  name: 'sleep',
  description: 'Waits.',
  input: { type: 'object', properties: { seconds: { type: 'number' } }, required: ['seconds'] },
  output: { type: 'object' },
})(Sleeping.prototype, 'sleep', Object.getOwnPropertyDescriptor(Sleeping.prototype, 'sleep'));

export default class SleepingModule {}
Module({ providers: [Sleeping] })(SleepingModule);
