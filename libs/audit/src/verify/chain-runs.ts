import { NOTHING_BEFORE, type Sealed } from '../chain/record-seal.js';
import type { ChainFault } from './chain-fault.js';

/** Records of one chain that follow each other where they stand. */
interface Run {
  readonly source: string;
  readonly order: number;
  readonly firstLine: number;
  readonly firstSeq: number;
  readonly firstPrev: string;
  lastLine: number;
  lastSeq: number;
  lastHash: string;
}

/** What was read of one chain in one group of sources, as runs: an untouched file is one, however long. */
export class ChainRuns {
  private readonly runs: Run[] = [];
  private latest: Run | null = null;

  constructor(private readonly chain: string) {}

  add({ seq, prev, hash }: Sealed, source: string, order: number, line: number): void {
    const { latest } = this;
    if (latest?.source === source && seq === latest.lastSeq + 1 && prev === latest.lastHash) {
      latest.lastSeq = seq;
      latest.lastHash = hash;
      latest.lastLine = line;
      return;
    }
    this.latest = {
      source,
      order,
      firstLine: line,
      firstSeq: seq,
      firstPrev: prev,
      lastLine: line,
      lastSeq: seq,
      lastHash: hash,
    };
    this.runs.push(this.latest);
  }

  /** The highest sequence number there is. */
  get last(): { seq: number; hash: string; source: string } {
    const top = this.runs.reduce((a, b) => (b.lastSeq > a.lastSeq ? b : a));
    return { seq: top.lastSeq, hash: top.lastHash, source: top.source };
  }

  faults(): ChainFault[] {
    const faults: ChainFault[] = [];
    const inOrder = this.runs.toSorted(
      (a, b) => a.firstSeq - b.firstSeq || a.order - b.order || a.firstLine - b.firstLine,
    );
    let before: Run | null = null;
    for (const run of inOrder) {
      const fault = before ? this.between(before, run) : this.atBegin(run);
      if (fault) faults.push(fault);
      if (!before || run.lastSeq > before.lastSeq) before = run;
    }
    return faults;
  }

  private atBegin(run: Run): ChainFault | null {
    if (run.firstSeq > 0)
      return this.fault(
        run,
        'incomplete',
        `the chain begins with record ${run.firstSeq}: what was before is not here`,
      );
    if (run.firstPrev !== NOTHING_BEFORE)
      return this.fault(run, 'altered', 'the first record names one before it');
    return null;
  }

  private between(before: Run, run: Run): ChainFault | null {
    const expected = before.lastSeq + 1;
    if (run.firstSeq > expected) {
      const missing = run.firstSeq - expected;
      const what = missing === 1 ? `record ${expected} is` : `records ${expected} to ${run.firstSeq - 1} are`;
      return { ...this.fault(run, 'missing', `${what} missing before this one`), seq: expected };
    }
    if (run.firstSeq < expected)
      return this.fault(
        run,
        'repeated',
        `record ${run.firstSeq} stands at ${before.source}:${before.firstLine} or after it already`,
      );
    if (run.firstPrev !== before.lastHash)
      return this.fault(
        run,
        'altered',
        `record ${run.firstSeq} does not follow record ${before.lastSeq} of ${before.source}:${before.lastLine}: one of them was made anew`,
      );
    if (run.source === before.source && run.firstLine < before.lastLine)
      return this.fault(
        run,
        'reordered',
        `record ${run.firstSeq} stands before record ${before.lastSeq} (line ${before.lastLine})`,
      );
    return null;
  }

  private fault({ source, firstLine, firstSeq }: Run, kind: ChainFault['kind'], told: string): ChainFault {
    return { kind, told, source, line: firstLine, chain: this.chain, seq: firstSeq };
  }
}
