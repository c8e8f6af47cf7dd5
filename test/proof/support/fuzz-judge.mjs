import { CANARY, root } from './fuzz-service.mjs';

/**
 * What may stand in an answer only if the request said it: names and places of the program, and internal columns. The stored names of
 * pointers are not among them: `aggregate` returns them where they cannot be made short.
 */
const INTERNAL = [
  /\n\s+at \S.*:\d+:\d+/,
  /file:\/\/\//,
  /node_modules/,
  /node:internal/,
  /\b(?:Type|Range|Reference|Syntax|Assertion|Eval)Error\b/,
  /\bMongo\w*Error\b|\bBSON\w*Error\b/,
  /\bCannot read propert|is not a function|is not iterable|Maximum call stack|of undefined\b/,
  /"_(?:rperm|wperm|hashed_password|tombstone|session_token)"/,
  new RegExp(root.replace(/\/$/, '').replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')),
];

/** @returns a sentence about what the text shows, or null */
export function shownIn(text, request) {
  if (text.includes(CANARY) && !request.includes(CANARY)) return 'shows a value that no agent may see';
  for (const pattern of INTERNAL) {
    const found = pattern.exec(text)?.[0];
    if (found !== undefined && !request.includes(found))
      return `shows something internal: ${found.slice(0, 120)}`;
  }
  return null;
}

/** @returns `{ outcome, fault }`: how a JSON-RPC message answers, and what is wrong with that */
export function judgedMessage(message) {
  if (message === null || typeof message !== 'object')
    return { outcome: 'odd', fault: 'the answer is no object' };
  const { error, result } = message;
  if (error) {
    const internal = error.code === -32603 && /^internal error/i.test(error.message ?? '');
    if (typeof error.code !== 'number' || typeof error.message !== 'string')
      return { outcome: 'odd', fault: 'the error has no code or no message' };
    return { outcome: `protocol ${error.code}`, fault: internal ? 'an internal error' : null };
  }
  if (result === undefined) return { outcome: 'no result', fault: null };
  if (!result?.isError) return { outcome: 'ok', fault: null };
  const code = result._meta?.['parse.error_code'];
  const text = result.content?.[0]?.text ?? '';
  if (code === undefined)
    return { outcome: 'refused without a code', fault: `a refusal without a code: ${text.slice(0, 200)}` };
  if (code === 'internal_error') return { outcome: code, fault: 'an internal error' };
  if (code === 'parse_error' && /could not complete|unavailable/.test(text))
    return { outcome: code, fault: `the database failed: ${text.slice(0, 200)}` };
  if (code === 'timeout') return { outcome: code, fault: 'a time-out' };
  return { outcome: `refused ${code}`, fault: null };
}

/** All messages in a body: one, a batch, or events of a stream. */
export function messagesIn(body, contentType = '') {
  if (/event-stream/.test(contentType)) {
    const texts = [...body.matchAll(/^data: ?(\{.*)$/gm)].map(([, text]) => text.trim());
    // The last event may have been read in part.
    return texts.flatMap((text) => tryJson(text) ?? []);
  }
  const value = tryJson(body);
  return value === undefined ? null : Array.isArray(value) ? value : [value];
}

function tryJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isMembers = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Whether a line on a pipe must be answered: true, false, or null where either is right. */
export function isDue(bytes) {
  const text = bytes.toString('utf8');
  if (text.trim() === '') return null;
  const value = tryJson(text);
  if (value === undefined) return true;
  if (!isMembers(value)) return null;
  const { id, method } = value;
  if (typeof method !== 'string' || method === '') return null;
  if (method.startsWith('notifications/') || method.startsWith('subscriptions/')) return null;
  return typeof id === 'string' || typeof id === 'number' ? true : null;
}

/**
 * The smallest case that still fails, found by leaving out members and halves, as far as the attempts reach.
 * @param fails whether a case shows the fault
 */
export async function minimised(given, fails, attempts = 250) {
  let best = given;
  let left = attempts;
  const tried = new Set();
  for (let found = true; found && left > 0;) {
    found = false;
    for (const smaller of reductions(best)) {
      const text = JSON.stringify(smaller);
      if (tried.has(text)) continue;
      tried.add(text);
      if ((left -= 1) < 0) break;
      if (!(await fails(smaller))) continue;
      best = smaller;
      found = true;
      break;
    }
  }
  return best;
}

function* reductions(value) {
  if (typeof value === 'string' && value.length > 1) {
    yield value.slice(0, value.length >> 1);
    yield value.slice(value.length >> 1);
    if (value.length < 30)
      for (let at = 0; at < value.length; at += 1) yield value.slice(0, at) + value.slice(at + 1);
  }
  if (Array.isArray(value)) {
    if (value.length > 3) {
      yield value.slice(0, value.length >> 1);
      yield value.slice(value.length >> 1);
    }
    for (let at = 0; at < value.length; at += 1) yield value.toSpliced(at, 1);
  } else if (isMembers(value)) {
    for (const key of Object.keys(value))
      yield Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  }
  if (value === null || typeof value !== 'object') return;
  for (const key of Object.keys(value)) {
    for (const smaller of reductions(value[key]))
      yield Array.isArray(value)
        ? value.with(Number(key), smaller)
        : Object.fromEntries(
            Object.entries(value).map(([name, one]) => [name, name === key ? smaller : one]),
          );
    // The member in the place of the whole.
    if (
      value[key] !== null &&
      typeof value[key] === 'object' &&
      isMembers(value) &&
      Object.keys(value).length === 1
    )
      yield value[key];
  }
}
