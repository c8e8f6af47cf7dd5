// A plugin with one tool that computes: work of the service alone, which neither a database nor the client takes part in.
import { Module } from '@nestjs/common';
import { Tool } from '@parley/server';
import { decorateMethod } from '../support/decorate-method.mjs';

class Busy {
  busy({ rounds }) {
    let value = 1;
    for (let round = 0; round < rounds; round += 1) value = (value * 48_271) % 2_147_483_647;
    return { value };
  }
}
decorateMethod(
  Tool({
    name: 'busy',
    description: 'Computes.',
    input: { type: 'object', properties: { rounds: { type: 'integer' } }, required: ['rounds'] },
    output: { type: 'object' },
  }),
  Busy,
  'busy',
);

class BusyModule {}
Module({ providers: [Busy] })(BusyModule);
export default BusyModule;
