import { Inject, Module } from '@nestjs/common';
import { Tool, ToolRegistry } from '@parley/server';
import { decorateMethod } from '../support/decorate-method.mjs';

/** A tool that changes the list of tools: what every listening stream hears of. */
class ChangingLists {
  constructor(registry) {
    this.registry = registry;
    this.changes = 0;
  }

  change() {
    this.changes += 1;
    const { definition, handler } = this.registry.get('change_list');
    this.registry.register({ definition: { ...definition, name: `change_${this.changes}` }, handler });
    return {};
  }
}
Inject(ToolRegistry)(ChangingLists, undefined, 0);
decorateMethod(
  Tool({ name: 'change_list', description: 'Adds a tool.', input: { type: 'object', properties: {} } }),
  ChangingLists,
  'change',
);

export default class ChangingListsModule {}
Module({ providers: [ChangingLists] })(ChangingListsModule);
