import { Module } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Tool } from '@parley/server';
import { decorateMethod } from '../../support/decorate-method.mjs';

/** A read that takes its time, as a task where the client knows tasks. */
class SlowCount {
  async count({ class_name: name, milliseconds }, call) {
    await pause(milliseconds, undefined, { signal: call.signal });
    return { count: await call.records.count(name) };
  }
}
decorateMethod(
  Tool({
    name: 'slow_count',
    description: 'Counts the rows of a class after a while.',
    task: 'optional',
    input: {
      type: 'object',
      properties: { class_name: { type: 'string' }, milliseconds: { type: 'number' } },
      required: ['class_name', 'milliseconds'],
    },
    output: { type: 'object' },
  }),
  SlowCount,
  'count',
);

export default class SlowCountModule {}
Module({ providers: [SlowCount] })(SlowCountModule);
