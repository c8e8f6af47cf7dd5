/** Bytes of one answer of a database or of Parse Server, at most. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * What every value of an answer counts as at least, in bytes: a list of small values takes far more memory as objects than
 * it has bytes on the wire.
 */
export const MIN_VALUE_BYTES = 64;

/** Answers up to this size, in bytes as they arrive, are taken without being weighed or waiting for a turn. */
export const SMALL_ANSWER_BYTES = 256 * 1024;

/** What several reads of one answer may take together, in bytes; each takes its own away. */
export interface AnswerLeft {
  bytes: number;
}

/** @param maxBytes Default: what the store reads for any answer */
export const answerLeft = (maxBytes = Infinity): AnswerLeft => ({
  bytes: Math.min(maxBytes, MAX_ANSWER_BYTES),
});
