import { Inject, Module } from '@nestjs/common';
import { SubAgents, Tool, ToolCallbacks, ToolRunner } from '@parley/server';

/** A tool that asks a sub-agent with less rights than its caller. */
class Delegating {
  constructor(subAgents, runner, callbacks) {
    this.subAgents = subAgents;
    this.runner = runner;
    this.announced = [];
    callbacks.beforeToolCall(({ tool }) => this.announced.push(tool));
  }

  async research(_args, call) {
    const inner = await this.subAgents.delegate(call, {
      tools: ['count_objects'],
      filters: { Post: { status: 'live' } },
    });
    const counted = await this.runner.run('count_objects', { class_name: 'Post' }, inner);
    const refused = await this.runner.run('query_class', { class_name: 'Post' }, inner);
    return {
      live: JSON.parse(counted.text).count,
      refused: refused.ok ? null : refused.refusal.code,
      announced: this.announced,
    };
  }
}
[SubAgents, ToolRunner, ToolCallbacks].forEach((token, index) => Inject(token)(Delegating, undefined, index));
Tool({ name: 'research', description: 'Counts what is live.' })(
  Delegating.prototype,
  'research',
  Object.getOwnPropertyDescriptor(Delegating.prototype, 'research'),
);

export default class DelegatingModule {}
Module({ providers: [Delegating] })(DelegatingModule);
