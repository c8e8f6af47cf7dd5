import type * as Api from '@opentelemetry/api';
import type { Sampler, SamplingResult } from '@opentelemetry/sdk-trace';

/** `SamplingDecision` of the SDK, which is loaded only where traces are made. */
const NOT_RECORD = 0;
const RECORD_AND_SAMPLED = 2;

/**
 * Decides anew for every request, whatever its caller says: neither the flag nor the trace id of a stranger may hide calls
 * from the operator or fill the collector. Spans below one of ours follow it.
 */
export class OwnSampler implements Sampler {
  /** @param dice from 0 up to, not including, 1 */
  constructor(
    private readonly api: Pick<typeof Api, 'trace' | 'TraceFlags'>,
    private readonly ratio: number,
    private readonly dice: () => number = Math.random,
  ) {}

  shouldSample(context: Api.Context): SamplingResult {
    const parent = this.api.trace.getSpanContext(context);
    const kept =
      parent && parent.isRemote !== true
        ? (parent.traceFlags & this.api.TraceFlags.SAMPLED) !== 0
        : this.dice() < this.ratio;
    return { decision: kept ? RECORD_AND_SAMPLED : NOT_RECORD };
  }

  toString(): string {
    return `OwnSampler{${this.ratio}}`;
  }
}
