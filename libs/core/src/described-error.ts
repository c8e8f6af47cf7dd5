/** Errors of drivers and mappers whose text quotes values of rows or of a write. Classes are known by name: libraries have copies. */
const QUOTING = new Set([
  'MongoServerError',
  'MongoBulkWriteError',
  'MongoWriteConcernError',
  'MongoError',
  'BSONError',
  'CastError',
  'ValidationError',
  'ValidatorError',
  'StrictModeError',
  'ObjectExpectedError',
  'ObjectParameterError',
  'VersionError',
  'DocumentNotFoundError',
]);

const NAME = /^[A-Za-z]\w{0,63}$/;

/**
 * The text of an error for logs, records and spans: without values. Where a library quotes them, its code and the columns of a
 * unique index stand in place of its text; the log of the database has the rest.
 */
export function describeError(error: Error): string {
  if (!QUOTING.has(error.name)) return error.message;
  const { code, codeName, keyPattern, path } = error as unknown as Record<string, unknown>;
  const columns =
    keyPattern !== null && typeof keyPattern === 'object' ? `(${Object.keys(keyPattern).join(', ')})` : null;
  const known = [code, codeName, columns, path].filter(
    (part) => typeof part === 'number' || (typeof part === 'string' && (part === columns || NAME.test(part))),
  );
  return ['an error without its values', ...known].join(' ');
}

const FRAME = /^\s+at .+$/;

/** Where an error was thrown, for logs: the frames of its stack, without its text, lines of which may look like frames. */
export function listFrames(error: unknown): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return '';
  const { stack } = error;
  const message = String(error.message);
  const at = stack.indexOf(message);
  return stack
    .slice(at < 0 ? 0 : at + message.length)
    .split('\n')
    .filter((line) => FRAME.test(line))
    .map((line) => `\n${line}`)
    .join('');
}
