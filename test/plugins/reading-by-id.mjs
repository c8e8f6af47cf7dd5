import { Inject, Module } from '@nestjs/common';
import { SubAgents, Tool, ToolRunner } from '@parley/server';

const input = {
  type: 'object',
  properties: { tool: { type: 'string' }, args: { type: 'object' } },
  required: ['tool', 'args'],
};
const output = { type: 'object' };

/** Calls another tool, as a sub-agent or inside a task. */
class ReadingById {
  constructor(subAgents, runner) {
    this.subAgents = subAgents;
    this.runner = runner;
  }

  async bySubAgent({ tool, args }, call) {
    const inner = await this.subAgents.delegate(call, { classes: { only: ['Note'] } });
    return { outcome: await this.runner.run(tool, args, inner) };
  }

  async byTask({ tool, args }, call) {
    return { outcome: await this.runner.run(tool, args, call) };
  }
}
[SubAgents, ToolRunner].forEach((token, index) => Inject(token)(ReadingById, undefined, index));
const declare = (method, options) =>
  Tool({ input, output, ...options })(
    ReadingById.prototype,
    method,
    Object.getOwnPropertyDescriptor(ReadingById.prototype, method),
  );
declare('bySubAgent', { name: 'by_sub_agent', description: 'Calls a tool as a sub-agent.' });
declare('byTask', { name: 'by_task', description: 'Calls a tool in a task.', task: 'required' });

export default class ReadingByIdModule {}
Module({ providers: [ReadingById] })(ReadingByIdModule);
