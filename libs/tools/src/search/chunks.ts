/** Pieces of one document, however long it is. */
export const MAX_CHUNKS = 200;

export interface ChunkSize {
  /** Characters. */
  readonly size: number;
  /** Characters that a chunk repeats of the one before; less than `size`. */
  readonly overlap: number;
}

export interface Chunked {
  readonly chunks: readonly string[];
  /** There was more than the chunks hold. */
  readonly truncated: boolean;
}

/** A text in pieces of equal size, none of which ends inside a character. */
export function chunked(text: string, { size, overlap }: ChunkSize, most = MAX_CHUNKS): Chunked {
  const characters = [...text];
  const chunks: string[] = [];
  for (let at = 0; at < characters.length; at += size - overlap) {
    if (chunks.length === most) return { chunks, truncated: true };
    chunks.push(characters.slice(at, at + size).join(''));
    if (at + size >= characters.length) break;
  }
  return { chunks, truncated: false };
}

/** What a text costs whoever reads it to a model. */
export const tokensOf = (text: string): number => Math.ceil(text.length / 4);

/** As many of the first as fit, at least one. @param most tokens; 0: no limit */
export function withinBudget<T extends { readonly content: string }>(
  ranked: readonly T[],
  most: number,
): readonly T[] {
  if (most === 0) return ranked;
  let spent = 0;
  const over = ranked.findIndex(({ content }) => (spent += tokensOf(content)) > most);
  return over < 0 ? ranked : ranked.slice(0, Math.max(over, 1));
}
