import { createHash } from 'node:crypto';

/** Vectors of texts that were asked for before; the longest unused go first. Texts themselves are not kept. */
export class EmbeddingCache {
  private readonly vectors = new Map<string, readonly number[]>();

  /** @param size vectors kept; 0: none */
  constructor(private readonly size: number) {}

  /** @param owner for whom: how fast an answer comes must not tell what others asked */
  get(owner: string, model: string, text: string): readonly number[] | undefined {
    const key = keyOf(owner, model, text);
    const vector = this.vectors.get(key);
    if (!vector) return undefined;
    this.vectors.delete(key);
    this.vectors.set(key, vector);
    return vector;
  }

  set(owner: string, model: string, text: string, vector: readonly number[]): void {
    this.vectors.set(keyOf(owner, model, text), vector);
    while (this.vectors.size > this.size) {
      const oldest = this.vectors.keys().next().value;
      if (oldest === undefined) return;
      this.vectors.delete(oldest);
    }
  }
}

function keyOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
