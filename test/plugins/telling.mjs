import { Module } from '@nestjs/common';
import { Tool } from '@parley/server';

/** Tools that say something while they run. */
class Telling {
  async countTo({ steps }, call) {
    for (let progress = 1; progress <= steps; progress += 1) call.progress({ progress, total: steps });
    call.log?.({ level: 'warning', data: { counted: steps } });
    return { counted: steps };
  }

  async askWhether(_args, call) {
    const schema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] };
    return call.ask('sure', { kind: 'form', message: 'Sure?', schema });
  }

  /** Goes on until its caller has had enough. */
  untilCancelled(_args, call) {
    call.progress({ progress: 1 });
    return new Promise((resolve) => call.signal.addEventListener('abort', () => resolve({ ended: true })));
  }
}

const declare = (name, method, input) =>
  Tool({ name, description: `Test tool ${name}.`, input })(
    Telling.prototype,
    method,
    Object.getOwnPropertyDescriptor(Telling.prototype, method),
  );
declare('count_to', 'countTo', {
  type: 'object',
  properties: { steps: { type: 'integer' } },
  required: ['steps'],
});
declare('ask_whether', 'askWhether', { type: 'object', properties: {} });
declare('until_cancelled', 'untilCancelled', { type: 'object', properties: {} });

export default class TellingModule {}
Module({ providers: [Telling] })(TellingModule);
