import { Module } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Tool } from '@parley/server';

/** A read that takes its time. */
class Patient {
  async count({ milliseconds }, call) {
    await pause(milliseconds, undefined, { signal: call.signal });
    return { count: await call.records.count('Item') };
  }
}
Tool({
  name: 'patient_count',
  description: 'Counts after a while.',
  task: 'optional',
  input: { type: 'object', properties: { milliseconds: { type: 'number' } }, required: ['milliseconds'] },
  output: { type: 'object' },
})(Patient.prototype, 'count', Object.getOwnPropertyDescriptor(Patient.prototype, 'count'));

export default class PatientModule {}
Module({ providers: [Patient] })(PatientModule);
