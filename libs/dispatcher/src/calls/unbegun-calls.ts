import { Injectable } from '@nestjs/common';
import { type McpRequest, type Refusal, Refused, member } from '#core';
import { type UnbegunCall } from '../protocol.js';
import { CallJournal, refusalByProtocol } from './call-journal.js';
import { spendCall } from './guards.js';

/** Counts and records calls that the protocol refuses before the pipeline: no way to call is free or unseen. */
@Injectable()
export class UnbegunCalls {
  constructor(private readonly journal: CallJournal) {}

  /** @param params unvalidated. @returns the refusal of a caller that has no calls left, else null */
  async note(params: unknown, request: McpRequest, error: UnbegunCall): Promise<Refusal | null> {
    const tool = member(params, 'name');
    // Without a name it calls no tool: the transport counts it as a request.
    if (typeof tool !== 'string') return null;
    const started = performance.now();
    const limited = await spendCall(request.agent).then(
      () => null,
      (thrown: unknown) => {
        if (thrown instanceof Refused) return thrown.refusal;
        throw thrown;
      },
    );
    const refusal = limited ?? (refusalByProtocol(error) as Refusal);
    await this.journal
      .record({
        tool,
        args: member(params, 'arguments') ?? {},
        context: request,
        outcome: { ok: false, refusal },
        milliseconds: performance.now() - started,
        notes: limited ? {} : { error },
      })
      // Nothing is withheld: the call has no result.
      ?.catch(() => undefined);
    return limited;
  }
}
