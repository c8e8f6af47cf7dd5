// A plugin with one tool that always runs as a task, and counts the rows of a class.
import { Module } from '@nestjs/common';
import { Tool } from '@parley/server';

class CountInTask {
  async count(_, call) {
    return { count: await call.records.count('Listing') };
  }
}
Tool({
  name: 'count_in_task',
  description: 'Counts as a task.',
  task: 'required',
  input: { type: 'object' },
  output: { type: 'object' },
})(CountInTask.prototype, 'count', Object.getOwnPropertyDescriptor(CountInTask.prototype, 'count'));

class CountInTaskModule {}
Module({ providers: [CountInTask] })(CountInTaskModule);
export default CountInTaskModule;
