import type { CallContext } from '#agent';
import type { ToolDefinition } from '#tools';

/** Ends a run that goes on as a task. Not a failure: the kernel turns it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  /** Who decided upon the call, when somebody had to: for the records of its later runs. */
  approver: string | undefined;

  constructor() {
    super('the call goes on as a task');
  }
}

/** Whether the call goes on as a task before its handler is asked anything. */
export function beginsTask({
  definition,
  context,
}: {
  readonly definition: Pick<ToolDefinition, 'task'> | undefined;
  readonly context: Pick<CallContext, 'background'>;
}): boolean {
  const always = definition?.task === 'required' || definition?.task === 'optional';
  return always && context.background === 'offered';
}

/** Why a run ended that another worker takes up: what comes of the call is for that one to record. */
export const RUN_HANDED_OVER = 'run_handed_over';
