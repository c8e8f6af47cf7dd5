import type { ChainHead } from '../audit-record.js';
import { NOTHING_BEFORE, readSealed, type RecordSeal, type SealedRecord } from '../chain/audit-chain.js';
import { isHead } from '../chain/chain-anchors.js';
import type { RecordSource } from './record-source.js';

/** Kinds of issues in a history of records. */
type ChainIssueKind =
  | 'unreadable'
  | 'altered'
  | 'other_key'
  | 'missing'
  | 'reordered'
  | 'repeated'
  | 'contradicted'
  | 'incomplete';

export interface ChainIssue {
  readonly kind: ChainIssueKind;
  /** What is wrong, in words. Public: `parley audit verify --json` prints it under this name. */
  readonly message: string;
  readonly source: string;
  /** Null when no line can be named. */
  readonly line: number | null;
  readonly chain?: string;
  readonly seq?: number;
}

/** Sorted by source and line, so that the first issue is where the history breaks. */
function inReadingOrder(faults: readonly ChainIssue[], sources: readonly string[]): ChainIssue[] {
  const place = new Map(sources.map((name, index) => [name, index]));
  const key = ({ source, line }: ChainIssue): [number, number] => [
    place.get(source) ?? sources.length,
    line ?? Infinity,
  ];
  return faults.toSorted((a, b) => {
    const [sourceA, lineA] = key(a);
    const [sourceB, lineB] = key(b);
    return sourceA - sourceB || (lineA === lineB ? 0 : lineA - lineB);
  });
}

/** Consecutive records of one chain in one source. */
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

/** The records of one chain in one group of sources, as runs. An untouched file is a single run. */
class ChainRuns {
  private readonly runs: Run[] = [];
  private latest: Run | null = null;
  /** The first one that reaches the highest sequence number. */
  private top: Run | null = null;

  constructor(private readonly chain: string) {}

  add({ seq, prev, hash }: SealedRecord, source: string, order: number, line: number): void {
    const { latest } = this;
    if (latest?.source === source && seq === latest.lastSeq + 1 && prev === latest.lastHash) {
      latest.lastSeq = seq;
      latest.lastHash = hash;
      latest.lastLine = line;
    } else this.begin({ seq, prev, hash }, source, order, line);
    if (this.latest && (!this.top || this.latest.lastSeq > this.top.lastSeq)) this.top = this.latest;
  }

  private begin(
    { seq, prev, hash }: Pick<SealedRecord, 'seq' | 'prev' | 'hash'>,
    source: string,
    order: number,
    line: number,
  ): void {
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

  /** The record with the highest sequence number. */
  get last(): { seq: number; hash: string; source: string } {
    const top = this.top as Run;
    return { seq: top.lastSeq, hash: top.lastHash, source: top.source };
  }

  faults(): ChainIssue[] {
    const faults: ChainIssue[] = [];
    const inOrder = this.runs.toSorted(
      (a, b) => a.firstSeq - b.firstSeq || a.order - b.order || a.firstLine - b.firstLine,
    );
    let before: Run | null = null;
    for (const run of inOrder) {
      const issue = before ? this.between(before, run) : this.atBegin(run);
      if (issue) faults.push(issue);
      if (!before || run.lastSeq > before.lastSeq) before = run;
    }
    return faults;
  }

  private atBegin(run: Run): ChainIssue | null {
    if (run.firstSeq > 0)
      return this.issue(
        run,
        'incomplete',
        `the chain begins with record ${run.firstSeq}: what was before is not here`,
      );
    if (run.firstPrev !== NOTHING_BEFORE)
      return this.issue(run, 'altered', 'the first record names one before it');
    return null;
  }

  private between(before: Run, run: Run): ChainIssue | null {
    const expected = before.lastSeq + 1;
    if (run.firstSeq > expected) {
      const missing = run.firstSeq - expected;
      const what = missing === 1 ? `record ${expected} is` : `records ${expected} to ${run.firstSeq - 1} are`;
      return { ...this.issue(run, 'missing', `${what} missing before this one`), seq: expected };
    }
    if (run.firstSeq < expected)
      return this.issue(
        run,
        'repeated',
        `record ${run.firstSeq} stands at ${before.source}:${before.firstLine} or after it already`,
      );
    if (run.firstPrev !== before.lastHash)
      return this.issue(
        run,
        'altered',
        `record ${run.firstSeq} does not follow record ${before.lastSeq} of ${before.source}:${before.lastLine}: one of them was rewritten`,
      );
    if (run.source === before.source && run.firstLine < before.lastLine)
      return this.issue(
        run,
        'reordered',
        `record ${run.firstSeq} stands before record ${before.lastSeq} (line ${before.lastLine})`,
      );
    return null;
  }

  private issue({ source, firstLine, firstSeq }: Run, kind: ChainIssue['kind'], message: string): ChainIssue {
    return { kind, message, source, line: firstLine, chain: this.chain, seq: firstSeq };
  }
}

export interface VerifyOptions {
  readonly seal: RecordSeal;
  /** Heads from elsewhere, such as a log. */
  readonly heads?: readonly ChainHead[];
  /** Only a part of the history is given: missing records are notes, not issues. Default false. */
  readonly partial?: boolean;
}

/** Printed by `parley audit verify --json`: the names of its members are public. */
export interface Verification {
  /** The first issue is where the history breaks. Empty when everything holds. */
  readonly faults: readonly ChainIssue[];
  /** Missing parts, when `partial` is set. */
  readonly notes: readonly ChainIssue[];
  readonly records: number;
  readonly chains: readonly VerifiedChain[];
}

interface VerifiedChain {
  readonly chain: string;
  readonly group: string;
  /** Sequence number of its latest record. */
  readonly seq: number;
  readonly hash: string;
  /** Whether the chain ends with its own `chain_end` record. */
  readonly ended: boolean;
  /**
   * The highest sequence number that another chain, sink or given head names; null when there is none. Records after
   * it could be cut off without notice.
   */
  readonly witnessed: number | null;
}

/** Maximum number of issues, and of notes: a tampered file has one per line. */
const MAX_FAULTS = 1_000;

interface KnownHead extends ChainHead {
  readonly by: string;
}

/**
 * Verifies histories in two passes: the first collects the known heads, the second checks the records against them.
 * @throws when a source cannot be read
 */
export async function verifyRecords(
  sources: readonly RecordSource[],
  { seal, heads = [], partial = false }: VerifyOptions,
): Promise<Verification> {
  const knownHeads = await collectKnownHeads(sources, heads);
  const wanted = new Map<string, Map<number, string | null>>();
  for (const { chain, seq } of knownHeads) {
    const places = wanted.get(chain) ?? new Map<number, string | null>();
    wanted.set(chain, places.set(seq, null));
  }
  const faults: ChainIssue[] = [];
  const notes: ChainIssue[] = [];
  const add = (issue: ChainIssue) => {
    // Notes are limited by themselves: they must not take the place of an issue.
    const kept = partial && issue.kind === 'incomplete' ? notes : faults;
    if (kept.length < MAX_FAULTS) kept.push(issue);
  };
  const groups = new Map<string, Map<string, ChainRuns>>();
  const found = new Map<string, Map<string, Map<number, string | null>>>();
  const ended = new Set<string>();
  const seals = new Map<string, ChainSeals>();
  let records = 0;
  for (const [order, { name, group, read }] of sources.entries()) {
    const chains = groups.get(group) ?? new Map<string, ChainRuns>();
    groups.set(group, chains);
    const places = found.get(group) ?? copyWanted(wanted);
    found.set(group, places);
    for await (const { line, value, text } of read()) {
      const record = readSealed(value);
      if (!record) {
        add({ kind: 'unreadable', message: 'not a sealed record', source: name, line });
        continue;
      }
      records += 1;
      const { chain, seq } = record;
      const sealed = seals.get(chain) ?? { records: 0, count: 0, broken: [] };
      seals.set(chain, sealed);
      sealed.records += 1;
      if (!seal.holds(record, text)) {
        const message = `record ${seq} is not what was sealed`;
        const issue = { kind: 'altered', message, source: name, line, chain, seq } as const;
        if (sealed.broken.length <= MAX_FAULTS) sealed.broken.push(issue);
        sealed.count += 1;
      }
      const runs = chains.get(chain) ?? new ChainRuns(chain);
      chains.set(chain, runs);
      runs.add(record, name, order, line);
      if (places.get(chain)?.has(seq)) places.get(chain)?.set(seq, record.hash);
      if (record.type === 'chain_end') ended.add(`${group} ${chain} ${seq}`);
    }
  }
  for (const sealed of seals.values()) for (const issue of judgeSeals(sealed)) add(issue);
  for (const [group, chains] of groups) {
    for (const runs of chains.values()) for (const issue of runs.faults()) add(issue);
    for (const anchor of knownHeads) {
      const issue = contradiction(anchor, chains, found.get(group), findSourceName(sources, group));
      if (issue) add(issue);
    }
  }
  // A history without any record was removed, or never kept.
  const [first] = sources;
  if (first && records === 0 && faults.length + notes.length === 0)
    add({ kind: 'incomplete', message: 'there is no record at all', source: first.name, line: null });
  const names = sources.map(({ name }) => name);
  const headsOf = byChain(knownHeads);
  return {
    faults: inReadingOrder(onceEach(faults), names),
    notes: inReadingOrder(onceEach(notes), names),
    records,
    chains: [...groups].flatMap(([group, chains]) =>
      [...chains].map(([chain, runs]) => {
        const { seq, hash } = runs.last;
        return {
          chain,
          group,
          seq,
          hash,
          ended: ended.has(`${group} ${chain} ${seq}`),
          witnessed: findAnchoredUpTo(headsOf.get(chain) ?? [], group),
        };
      }),
    ),
  };
}

/** The records of one chain, and those whose hash another key, or another record, has made. */
interface ChainSeals {
  records: number;
  /** How many do not hold. */
  count: number;
  /** The first of them. */
  readonly broken: ChainIssue[];
}

/** A chain is sealed with one key: where none of its records holds, the key is another one, and that is said once. */
function judgeSeals({ records, count, broken }: ChainSeals): readonly ChainIssue[] {
  const [first] = broken;
  if (!first || records < 2 || count < records) return broken;
  const message = `this key seals none of the ${records} records of chain ${first.chain}: it is not the key that they were written with (audit.chainKey), or all of them were rewritten`;
  return [{ ...first, kind: 'other_key', message }];
}

async function collectKnownHeads(
  sources: readonly RecordSource[],
  heads: readonly ChainHead[],
): Promise<KnownHead[]> {
  const knownHeads: KnownHead[] = heads.map((head) => ({ ...head, by: 'the head that was given' }));
  const groups = new Set(sources.map(({ group }) => group));
  for (const { name, group, read } of sources) {
    const last = new Map<string, SealedRecord>();
    for await (const { line, value } of read()) {
      const record = readSealed(value);
      if (!record) continue;
      if (groups.size > 1 && (last.get(record.chain)?.seq ?? -1) < record.seq) last.set(record.chain, record);
      if (!record.type.startsWith('chain_') || !Array.isArray(record['heads'])) continue;
      for (const head of record['heads'].filter(isHead)) knownHeads.push({ ...head, by: `${name}:${line}` });
    }
    // All groups must hold the same records.
    for (const { chain, seq, hash } of last.values()) knownHeads.push({ chain, seq, hash, by: group });
  }
  return knownHeads;
}

function contradiction(
  { chain, seq, hash, by }: KnownHead,
  chains: ReadonlyMap<string, ChainRuns>,
  places: ReadonlyMap<string, ReadonlyMap<number, string | null>> | undefined,
  source: string,
): ChainIssue | null {
  const runs = chains.get(chain);
  const at = { chain, seq, source: runs?.last.source ?? source, line: null };
  if (!runs)
    return { ...at, kind: 'incomplete', message: `chain ${chain}, of which ${by} knows, is not here at all` };
  const held = places?.get(chain)?.get(seq) ?? null;
  if (held === hash) return null;
  if (held !== null)
    return {
      ...at,
      kind: 'contradicted',
      message: `record ${seq} is not the one that ${by} saw: the chain was rewritten`,
    };
  const { seq: last } = runs.last;
  return last < seq
    ? {
        ...at,
        kind: 'missing',
        seq: last + 1,
        message: `records ${last + 1} to ${seq} are cut off the end: ${by} saw them`,
      }
    : null;
}

function findSourceName(sources: readonly RecordSource[], group: string): string {
  return sources.find((source) => source.group === group)?.name ?? group;
}

function copyWanted(wanted: ReadonlyMap<string, ReadonlyMap<number, string | null>>) {
  return new Map([...wanted].map(([chain, places]) => [chain, new Map(places)]));
}

function byChain(knownHeads: readonly KnownHead[]): ReadonlyMap<string, readonly KnownHead[]> {
  const heads = new Map<string, KnownHead[]>();
  for (const head of knownHeads) {
    const known = heads.get(head.chain);
    if (known) known.push(head);
    else heads.set(head.chain, [head]);
  }
  return heads;
}

/** @param heads of one chain: any number */
function findAnchoredUpTo(heads: readonly KnownHead[], group: string): number | null {
  let highest: number | null = null;
  for (const { seq, by } of heads) if (by !== group && (highest === null || seq > highest)) highest = seq;
  return highest;
}

/** Several heads that reveal the same cut are one issue: the one with the highest sequence number. */
function onceEach(faults: readonly ChainIssue[]): ChainIssue[] {
  const kept = new Map<string, ChainIssue>();
  for (const issue of faults) {
    const { kind, source, line, chain, seq } = issue;
    kept.set(
      line === null
        ? [kind, source, chain, kind === 'missing' ? '' : seq].join(' ')
        : `${kind} ${source} ${line} ${seq}`,
      issue,
    );
  }
  return [...kept.values()];
}
