import { IntrinsicException } from '@nestjs/common';

/**
 * Ends a run whose questions the client has to answer first. Not a failure, and nothing for a log: the kernel turns it into
 * the answer.
 */
export class InputRequired extends IntrinsicException {
  override readonly name = 'InputRequired';
  constructor() {
    super('the client has to answer first');
  }
}
