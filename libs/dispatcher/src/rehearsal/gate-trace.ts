import { isDeepStrictEqual } from 'node:util';
import type { CallTrace, LimitOrigin } from '#agent';

/** A gate that let the call pass, and the class it was asked about. */
export interface PassedGate {
  readonly gate: string;
  readonly subject?: string;
}

/** A predicate that every row read of a class must meet, and who asked for it. */
export interface InjectedLimit {
  readonly className: string;
  readonly origin: LimitOrigin;
  readonly where: Readonly<Record<string, unknown>>;
}

/** Writes down what the gates of one call decide. A gate that is asked twice about the same thing is told once. */
export class GateTrace implements CallTrace {
  private readonly gates: PassedGate[] = [];
  private readonly limits: InjectedLimit[] = [];

  get passedGates(): readonly PassedGate[] {
    return this.gates;
  }

  get injected(): readonly InjectedLimit[] {
    return this.limits;
  }

  passed(gate: string, subject?: string): void {
    if (this.gates.some((known) => known.gate === gate && known.subject === subject)) return;
    this.gates.push({ gate, ...(subject !== undefined && { subject }) });
  }

  limited(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void {
    const limit = { className, origin, where };
    if (!this.limits.some((known) => isDeepStrictEqual(known, limit))) this.limits.push(limit);
  }
}
