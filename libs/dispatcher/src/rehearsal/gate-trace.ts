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

/** A field that is not told in clear, and what is done with it. */
export interface MaskedField {
  readonly className: string;
  readonly field: string;
  readonly mask: string;
}

/** Writes down what the gates of one call decide. A gate that is asked twice about the same thing is told once. */
export class GateTrace implements CallTrace {
  private readonly gates: PassedGate[] = [];
  private readonly limits: InjectedLimit[] = [];
  private readonly masks: MaskedField[] = [];

  get maskedFields(): readonly MaskedField[] {
    return this.masks;
  }

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

  masked(className: string, fields: ReadonlyMap<string, string>): void {
    for (const [field, mask] of fields) {
      if (this.masks.some((known) => known.className === className && known.field === field)) continue;
      this.masks.push({ className, field, mask });
    }
  }
}
