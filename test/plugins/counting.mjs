import { Module } from '@nestjs/common';
import { AgentFields, ParseClass, Tool } from '@parley/server';

/** A tool and a class rule as a plugin in plain JavaScript brings them. */
class Counting {
  async rowsOf({ className }, call) {
    return { rows: await call.records.count(className) };
  }
}
Tool({
  name: 'rows_of',
  description: 'Counts the rows of a class.',
  input: { type: 'object', properties: { className: { type: 'string' } }, required: ['className'] },
  output: { type: 'object' },
})(Counting.prototype, 'rowsOf', Object.getOwnPropertyDescriptor(Counting.prototype, 'rowsOf'));

class PostRules {}
ParseClass('Post')(PostRules);
AgentFields('title')(PostRules);

export default class CountingModule {}
Module({ providers: [Counting, PostRules] })(CountingModule);
