/** Ends a run that goes on as a task. Not a failure: the kernel turns it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  constructor() {
    super('the call goes on as a task');
  }
}
