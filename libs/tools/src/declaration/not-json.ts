const place = (path: string, key: string) => (path === '' ? key : `${path}.${key}`);

/**
 * Why a result of an application's tool cannot be told as JSON, with the place, or null. Only what would end in a fault
 * without a place, or be told as `{}` in silence; values with a `toJSON` of their own speak for themselves.
 */
export function notJson(result: unknown, path = '', above: readonly object[] = []): string | null {
  const at = path === '' ? 'the result' : `'${path}' of the result`;
  if (typeof result === 'bigint') return `${at} is a bigint: make it a string or a number`;
  if (result === null || typeof result !== 'object' || hasWords(result)) return null;
  if (isPromise(result)) {
    // What it rejects with was never waited for either, and must not end the process.
    result.then(undefined, () => undefined);
    return `${at} is a promise: an await is missing`;
  }
  if (result instanceof Map || result instanceof Set) {
    return `${at} is a ${result instanceof Map ? 'Map' : 'Set'}, which JSON has no word for: make it an object or an array`;
  }
  if (above.includes(result)) return `${at} contains itself`;
  const within = [...above, result];
  let first: string | null = null;
  for (const [key, value] of Object.entries(result)) {
    // To the end even so: a second promise must be looked after as well.
    const fault = notJson(value, place(path, key), within);
    first ??= fault;
  }
  return first;
}

const hasWords = (value: object) => 'toJSON' in value && typeof value.toJSON === 'function';
const isPromise = (value: object): value is PromiseLike<unknown> =>
  'then' in value && typeof value.then === 'function';
