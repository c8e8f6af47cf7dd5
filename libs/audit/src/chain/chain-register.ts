import type { VersionedStore } from '#cluster';
import type { ChainHead } from '../audit-event.js';

/** Where processes tell each other how far their chains have come. */
export abstract class ChainRegister {
  /** @throws when it cannot be reached */
  abstract announce(head: ChainHead): Promise<void>;
  /** Of every chain that was announced, running or ended. @throws when it cannot be reached */
  abstract heads(): Promise<readonly ChainHead[]>;
}

const RECORD = 'heads';
/** Milliseconds after which a head that nobody announced anew is forgotten: 90 days. */
const LIFETIME = 90 * 86_400_000;
const MAX_HEADS = 200;
const ATTEMPTS = 10;

/** One record of the state that replicas share, the latest heads in it. */
export class SharedChainRegister extends ChainRegister {
  constructor(private readonly store: VersionedStore) {
    super();
  }

  async announce(head: ChainHead): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const known = await this.store.find(RECORD);
      const others = known ? headsIn(known.value).filter(({ chain }) => chain !== head.chain) : [];
      const value = { heads: [...others, { ...head }].slice(-MAX_HEADS) };
      const done = known
        ? await this.store.replace(RECORD, known.revision, value, LIFETIME)
        : await this.store.create(RECORD, value, LIFETIME);
      if (done) return;
    }
    throw new Error('others kept changing the register of chains');
  }

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
