export interface Embedding {
  /** As many finite numbers as `dimensions` says. */
  readonly vector: readonly number[];
  /** What the text counted for, as the provider bills it. */
  readonly tokens: number;
}

/** Why a text could not be embedded; for the log alone, and without the text or a credential in it. */
export class EmbeddingError extends Error {
  override readonly name = 'EmbeddingError';
}

/** Turns text into a vector. */
export abstract class EmbeddingProvider {
  /** Told apart in caches: one model at one place. */
  abstract readonly model: string;
  abstract readonly dimensions: number;
  /** @throws EmbeddingError; the reason of `signal` when it was given up */
  abstract embed(text: string, signal: AbortSignal): Promise<Embedding>;
}

/** What a text will count for, before a provider was asked: a quarter of its characters. */
export function estimatedTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
