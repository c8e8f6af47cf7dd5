import { ProtocolError } from '@parley/server';
import { setTimeout as pause } from 'node:timers/promises';
import { declareTools, form, said, texts } from './declare.mjs';

const NAME = { name: { type: 'string' } };

/** Calls that go on as tasks, and one that never does. */
export class TaskTools {
  greet({ name }) {
    return said(`Hello, ${name}!`);
  }

  async slow_compute({ seconds, label }, call) {
    if (seconds > 0) call.continueAsTask();
    await pause(seconds * 1000, undefined, { signal: call.signal });
    return said(`computed ${label}`);
  }

  async failing_job() {
    await pause(300);
    throw new Error('the job fails');
  }

  async protocol_error_job() {
    await pause(100);
    throw new ProtocolError(-32603, 'protocol failure');
  }

  async confirm_delete({ filename }, call) {
    const answer = await call.ask('confirm', form(`Delete ${filename}?`, { confirm: { type: 'boolean' } }));
    return said(`deleted: ${answer.content?.confirm}`);
  }

  async multi_input(_args, call) {
    await Promise.all([call.ask('first', form('First?', NAME)), call.ask('second', form('Second?', NAME))]);
    return said('both answered');
  }

  async test_tool_with_task(_args, call) {
    const answer = await call.ask('user_name', form('What is your name?', NAME));
    call.continueAsTask();
    await pause(50);
    return said(`Hello, ${answer.content?.name}`);
  }
}

declareTools(TaskTools, {
  greet: { input: texts('name') },
  slow_compute: {
    task: 'on-demand',
    input: {
      type: 'object',
      properties: { seconds: { type: 'number' }, label: { type: 'string' } },
      required: ['seconds'],
    },
  },
  failing_job: { task: 'required' },
  protocol_error_job: { task: 'required' },
  confirm_delete: { task: 'required', input: texts('filename') },
  multi_input: { task: 'required' },
  test_tool_with_task: { task: 'on-demand' },
});
