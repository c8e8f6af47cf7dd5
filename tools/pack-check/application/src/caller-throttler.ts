import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
import { ParleyExecutionContext } from '@parley/server';

/** As docs/guide/module.md shows it: agents are counted by principal. */
@Injectable()
export class CallerThrottler extends ThrottlerGuard {
  protected override getRequestResponse(context: ExecutionContext) {
    if (!ParleyExecutionContext.isTool(context)) return super.getRequestResponse(context);
    const { principal } = ParleyExecutionContext.create(context).getAgent();
    // A tool has no request, and no response to set headers on.
    return { req: { principal }, res: { header: () => undefined } };
  }

  protected override getTracker(request: Record<string, unknown>): Promise<string> {
    return Promise.resolve(String(request['principal'] ?? request['ip']));
  }
}
