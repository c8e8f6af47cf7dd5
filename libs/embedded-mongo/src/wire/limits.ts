/** Largest wire message accepted or sent, in bytes (announced in the handshake). */
export const MAX_MESSAGE_BYTES = 48_000_000;
/** Largest stored document, in bytes. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;
/** Most write statements in one command. */
export const MAX_WRITE_BATCH = 100_000;
/** Deepest nesting of a stored document. */
export const MAX_DOCUMENT_DEPTH = 100;
/** Deepest nesting of a command, which wraps documents and pipelines. */
export const MAX_COMMAND_DEPTH = 200;
