import { Inject, Module } from '@nestjs/common';
import { Tool, ToolRegistry } from '@parley/server';
import { decorateMethod } from '../support/decorate-method.mjs';

/** As many tools as BENCH_TOOLS says, each with arguments of the usual size. */
class ManyTools {
  constructor(registry) {
    this.registry = registry;
  }

  onApplicationBootstrap() {
    const { definition, handler } = this.registry.get('made_0');
    for (let index = 1; index < Number(process.env.BENCH_TOOLS); index += 1)
      this.registry.register({ definition: { ...definition, name: `made_${index}` }, handler });
  }

  made() {
    return {};
  }
}
Inject(ToolRegistry)(ManyTools, undefined, 0);
decorateMethod(
  Tool({
    name: 'made_0',
    description: 'Reads the listings of one format that were added after a day, the newest first.',
    input: {
      type: 'object',
      properties: {
        format: { type: 'string', description: 'Of the listings.', enum: ['vinyl', 'cd', 'tape'] },
        after: { type: 'string', format: 'date-time', description: 'Only what is newer.' },
        limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Rows. Default 10.' },
      },
      required: ['format'],
    },
  }),
  ManyTools,
  'made',
);

export default class ManyToolsModule {}
Module({ providers: [ManyTools] })(ManyToolsModule);
