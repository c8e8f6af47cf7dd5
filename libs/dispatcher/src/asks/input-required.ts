/** Ends a run whose questions the client has to answer first. Not a failure: the kernel turns it into the answer. */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';
  constructor() {
    super('the client has to answer first');
  }
}
