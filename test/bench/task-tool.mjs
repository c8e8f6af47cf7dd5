// A plugin with one tool that always runs as a task, and counts the rows of a class.
import { Module } from '@nestjs/common';
import { Tool } from '@parley/server';
import { decorateMethod } from '../support/decorate-method.mjs';

class CountInTask {
  async count(_, call) {
    return { count: await call.records.count('Listing') };
  }
}
decorateMethod(
  Tool({
    name: 'count_in_task',
    description: 'Counts as a task.',
    task: 'required',
    input: { type: 'object' },
    output: { type: 'object' },
  }),
  CountInTask,
  'count',
);

class CountInTaskModule {}
Module({ providers: [CountInTask] })(CountInTaskModule);
export default CountInTaskModule;
