/** The command was not given what it needs; ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
