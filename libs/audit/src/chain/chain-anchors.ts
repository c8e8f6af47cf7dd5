import type { VersionedStore } from '#state';
import type { ChainHead } from '../audit-record.js';
import { type DeliveryLog, errorName } from '../delivery/record-delivery.js';

const RECORD = 'heads';
/** Milliseconds after which a head that is not renewed is deleted: 90 days. */
const HEADS_LIFETIME = 90 * 86_400_000;
const MAX_HEADS = 200;
const MAX_ATTEMPTS = 10;

/** The heads of the chains of all processes, the latest of them, in one record of the shared state. */
export class ChainAnchorStore {
  constructor(private readonly store: VersionedStore) {}

  /** @throws when it cannot be reached */
  async announce(head: ChainHead): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const known = await this.store.find(RECORD);
      const others = known ? headsIn(known.value).filter(({ chain }) => chain !== head.chain) : [];
      const value = { heads: [...others, { ...head }].slice(-MAX_HEADS) };
      const done = known
        ? await this.store.replace(RECORD, known.revision, value, HEADS_LIFETIME)
        : await this.store.create(RECORD, value, HEADS_LIFETIME);
      if (done) return;
    }
    throw new Error('others kept changing the register of chains');
  }

  /** Heads of all announced chains, running or ended. @throws when the store cannot be reached */
  async heads(): Promise<readonly ChainHead[]> {
    const known = await this.store.find(RECORD);
    return known ? headsIn(known.value) : [];
  }
}

function headsIn(value: unknown): ChainHead[] {
  const { heads } = value as { readonly heads?: unknown };
  return Array.isArray(heads) ? heads.filter(isHead) : [];
}

export function isHead(value: unknown): value is ChainHead {
  if (typeof value !== 'object' || value === null) return false;
  const { chain, seq, hash } = value as Record<string, unknown>;
  return typeof chain === 'string' && Number.isSafeInteger(seq) && typeof hash === 'string';
}

interface ChainAnchorOptions {
  /** Null: heads are not shared with other processes. */
  readonly anchors: ChainAnchorStore | null;
  /** The head of this process's chain. */
  head(): ChainHead | null;
  recordHeads(heads: readonly ChainHead[]): void;
  readonly log: DeliveryLog;
}

/** Maximum number of heads in one record. */
const MAX_NAMED = 100;

/**
 * Publishes the head of this chain and records the heads of others in it. If the end of a chain is cut off, its
 * records are still named in other chains and in the log.
 */
export class ChainAnchor {
  private readonly seen = new Map<string, string>();
  private announced: string | null = null;

  constructor(private readonly options: ChainAnchorOptions) {}

  /** The heads of earlier chains: those in the store and those found in the sinks. */
  async before(found: readonly ChainHead[]): Promise<ChainHead[]> {
    const anchoredHeads = await this.readAnchoredHeads();
    const latest = new Map<string, ChainHead>();
    for (const head of [...anchoredHeads, ...found]) {
      const known = latest.get(head.chain);
      if (!known || known.seq < head.seq) latest.set(head.chain, head);
    }
    const heads = [...latest.values()].slice(-MAX_NAMED);
    this.remember(heads);
    return heads;
  }

  /** Runs periodically. Never throws. */
  async look(): Promise<void> {
    await this.announce();
    const news = (await this.readAnchoredHeads()).filter(({ chain, hash }) => this.seen.get(chain) !== hash);
    if (news.length === 0) return;
    this.remember(news);
    this.options.recordHeads(news.slice(-MAX_NAMED));
    // A record of other heads is not announced by itself: two processes would answer each other without end.
    this.announced = this.options.head()?.hash ?? null;
  }

  /** Never throws. */
  async announce(): Promise<void> {
    const head = this.options.head();
    if (!head || head.hash === this.announced) return;
    const { anchors, log } = this.options;
    log.log(`the head of audit chain ${head.chain} is record ${head.seq} with hash ${head.hash}`);
    this.announced = head.hash;
    this.seen.set(head.chain, head.hash);
    try {
      await anchors?.announce(head);
    } catch (error) {
      this.announced = null;
      log.warn(`the audit chain could not be announced (${errorName(error)})`);
    }
  }

  private async readAnchoredHeads(): Promise<readonly ChainHead[]> {
    try {
      return (await this.options.anchors?.heads()) ?? [];
    } catch (error) {
      this.options.log.warn(`the heads of other audit chains could not be read (${errorName(error)})`);
      return [];
    }
  }

  private remember(heads: readonly ChainHead[]): void {
    for (const { chain, hash } of heads) this.seen.set(chain, hash);
  }
}
