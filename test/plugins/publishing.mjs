import { Module } from '@nestjs/common';
import { AgentMethod, ParseClass } from '@parley/server';

/** A method whose preview repeats, in words of its own, what it read. */
class Publishing {
  publish(_args, { receiver }) {
    return { headline: `Publish: ${receiver.body}` };
  }
}
AgentMethod({ permission: 'write', type: 'instance', supportsDryRun: true })(
  Publishing.prototype,
  'publish',
  Object.getOwnPropertyDescriptor(Publishing.prototype, 'publish'),
);
ParseClass('Post')(Publishing);

export default class PublishingModule {}
Module({ providers: [Publishing] })(PublishingModule);
