import { createHash } from 'node:crypto';
import { ExpiringMap, processClock } from '#cluster';

/**
 * Vectors of texts that were asked for before. When it is full, the owner that has most loses its longest unused one. Texts
 * themselves are not kept.
 */
export class EmbeddingCache {
  private readonly vectors: ExpiringMap<readonly number[]> | null;

  /** @param size vectors kept; 0: none */
  constructor(size: number) {
    this.vectors = size === 0 ? null : new ExpiringMap(size, processClock);
  }

  /** @param owner for whom: how fast an answer comes must not tell what others asked */
  get(owner: string, model: string, text: string): readonly number[] | undefined {
    const key = keyOf(owner, model, text);
    const vector = this.vectors?.get(key);
    if (vector) this.vectors?.set(key, vector, Infinity, { owner });
    return vector;
  }

  set(owner: string, model: string, text: string, vector: readonly number[]): void {
    this.vectors?.set(keyOf(owner, model, text), vector, Infinity, { owner });
  }
}

function keyOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
