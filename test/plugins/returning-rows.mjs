import { Module } from '@nestjs/common';
import { AgentMasks, AgentMethod, ParseClass } from '@parley/server';

/** A declared method that returns what it was given to read, and objects it made up itself. */
class CustomerMethods {
  async found(_args, call) {
    return { rows: await call.records.find('Customer') };
  }

  async made() {
    return { __type: 'Object', className: 'Customer', objectId: 'c1', name: 'Ada', email: 'MADE-UP-SECRET' };
  }

  async itself(_args, call) {
    return call.receiver;
  }
}
for (const [name, type] of [
  ['found', 'class'],
  ['made', 'class'],
  ['itself', 'instance'],
]) {
  AgentMethod({ type })(
    CustomerMethods.prototype,
    name,
    Object.getOwnPropertyDescriptor(CustomerMethods.prototype, name),
  );
}
ParseClass('Customer')(CustomerMethods);
AgentMasks({ token: 'deny' })(CustomerMethods);

export default class ReturningRowsModule {}
Module({ providers: [CustomerMethods] })(ReturningRowsModule);
