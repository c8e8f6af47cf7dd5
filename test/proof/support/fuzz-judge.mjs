import { CANARY, root } from './fuzz-service.mjs';

/** What V8 says of a mistake in a program, by the texts of its messages. A class may be called `undefined`; no refusal says these. */
const SCRIPT_ERRORS = [
  'Cannot (?:read|set) propert(?:y|ies) of (?:undefined|null)',
  'Cannot read private member',
  'Cannot destructure property',
  'Cannot convert undefined or null to object',
  'Cannot convert a (?:BigInt|Symbol) value',
  'Cannot mix BigInt and other types',
  "Cannot use 'in' operator to search for",
  'Cannot access \\S+ before initialization',
  'Cannot (?:assign to read only|redefine) property',
  'Class constructor \\S+ cannot be invoked',
  'Converting circular structure to JSON',
  'Maximum call stack size exceeded',
  'Reduce of empty array with no initial value',
  'Invalid (?:array|string) length',
  'Invalid time value',
  'is not (?:a function|a constructor|iterable)\\b',
];

/**
 * What may stand in an answer only if the request said it: names and places of the program, and internal columns. The stored names of
 * pointers are not among them: `aggregate` returns them where they cannot be made short.
 */
const INTERNAL = [
  /\n\s+at \S.*:\d+:\d+/g,
  /file:\/\/\//g,
  /node_modules/g,
  /node:internal/g,
  /\b(?:Type|Range|Reference|Syntax|Assertion|Eval)Error\b/g,
  /\bMongo\w*Error\b|\bBSON\w*Error\b/g,
  new RegExp(SCRIPT_ERRORS.join('|'), 'g'),
  /(?<=")_(?:rperm|wperm|hashed_password|tombstone|session_token)(?=")/g,
  new RegExp(root.replace(/\/$/, '').replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'g'),
];

/** A text in JSON, and JSON in that, has escapes: they would hide the ends of lines and quotes. */
const unescaped = (text) => text.replaceAll(/\\+n/g, '\n').replaceAll(/\\+"/g, '"');

/**
 * @param request all that the caller said: what it repeats is no news
 * @returns a sentence about what the text shows, or null
 */
export function shownIn(text, request) {
  const [answer, asked] = [unescaped(text), unescaped(request)];
  if (answer.includes(CANARY) && !asked.includes(CANARY)) return 'shows a value that no agent may see';
  const found = INTERNAL.flatMap((pattern) => answer.match(pattern) ?? []).find(
    (one) => !asked.includes(one),
  );
  return found === undefined ? null : `shows something internal: ${found.slice(0, 120)}`;
}

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Whether a reader of JSON makes another number of a whole one than it is, or an infinity. */
function isRounded(literal) {
  const value = Number(literal);
  if (!Number.isFinite(value)) return true;
  if (!/^-?\d+$/.test(literal) || BigInt(literal) === BigInt(value)) return false;
  // No 64-bit integer: the text that writers make of a double.
  return Math.abs(value) < 2 ** 63 || String(value) !== literal;
}

/** The numbers of a JSON text that its readers round, in their order. */
const roundedIn = (text) =>
  [...text.matchAll(STRING_OR_NUMBER)]
    .map(([token]) => token)
    .filter((token) => !token.startsWith('"') && isRounded(token));

/** Whether an object of a valid JSON text has a member twice, in whichever spelling. */
function repeatsMember(text) {
  const open = [];
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[[\]{}]/g)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (token.endsWith(':')) {
      const name = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
      if (open.at(-1).has(name)) return true;
      open.at(-1).add(name);
    }
  }
  return false;
}

const withoutMark = (text) => text.replace(/^\uFEFF/, '');

/**
 * What an answer says of a text that readers of JSON understand differently: it may not be a result.
 * @param answer the text of the answer to this request alone
 * @returns a sentence about what was taken, or null
 */
export function takenFrom(request, answer, { outcome }) {
  const text = withoutMark(request);
  const value = tryJson(text);
  if (!isMembers(value)) return null;
  if (repeatsMember(text)) return outcome === 'ok' ? 'a member that was given twice was taken' : null;
  const rounded = roundedIn(text);
  const idIsRounded = rounded.some((literal) => Number(literal) === value.id);
  if (rounded.length === 0)
    return text !== request &&
      outcome === 'protocol -32700' &&
      answer.includes('invalid JSON') &&
      depthOf(value) <= 20
      ? 'a byte order mark was taken for a part of the text'
      : null;
  if (outcome !== 'ok') return null;
  const inId = idIsRounded ? rounded.find((literal) => answer.includes(`"id":${literal}`)) : undefined;
  if (idIsRounded && inId === undefined) return 'an id was answered with other digits';
  return rounded.length > (idIsRounded ? 1 : 0) ? 'a number that readers round was taken' : null;
}

const depthOf = (value) =>
  value === null || typeof value !== 'object' ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf));

/** @returns `{ outcome, fault }`: how a JSON-RPC message answers, and what is wrong with that */
function judgedMessage(message) {
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
function messagesIn(body, contentType = '') {
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

export function judgeReply(reply, request) {
  if (reply?.accepted) return { outcome: 'accepted', fault: null };
  if (!reply || (!('result' in reply) && !('error' in reply))) return { outcome: 'odd', fault: 'no reply' };
  const judged = judgedMessage(reply);
  const text = JSON.stringify('error' in reply ? reply.error : reply.result);
  const tail = reply.envelopeTail?.toString('utf8');
  return {
    ...judged,
    fault: judged.fault ?? shownIn(text, request) ?? (tail === undefined ? null : unequal(tail, text)),
  };
}

/** An answer that was written as text is the answer that it stands for. */
function unequal(tail, text) {
  return JSON.stringify(JSON.parse(`{"a":1${tail}`).result) === text
    ? null
    : 'the written answer differs from its result';
}

export function judgeHttp(frame, answer) {
  const request = `${Buffer.from(frame.body, 'base64').toString('utf8')} ${JSON.stringify(frame.headers)} ${frame.path}`;
  if (answer.late)
    return frame.framed
      ? { outcome: 'late', fault: `no answer in time: ${answer.text}` }
      : { outcome: 'waits', fault: null };
  if (answer.closed)
    return frame.framed
      ? { outcome: 'closed', fault: `no answer, the connection was closed: ${answer.text}` }
      : { outcome: 'closed', fault: null };
  const { status, headers, body } = answer;
  const shown = shownIn(body, request);
  if (shown) return { outcome: `status ${status}`, fault: shown };
  if (status >= 500 && status !== 503) return { outcome: `status ${status}`, fault: `status ${status}` };
  if (!/json|event-stream/.test(headers['content-type'] ?? '') || body === '')
    return { outcome: `status ${status}`, fault: null };
  const messages = messagesIn(body, headers['content-type']);
  if (messages === null) return { outcome: `status ${status}`, fault: 'the body is no JSON' };
  if (!body.includes('"jsonrpc"') || messages.length === 0)
    return { outcome: `status ${status}`, fault: null };
  const judged = messages.map(judgedMessage);
  const outcome = messages.length > 1 ? 'several messages' : judged[0].outcome;
  const taken = frame.framed
    ? takenFrom(Buffer.from(frame.body, 'base64').toString('utf8'), body, { outcome })
    : null;
  return { outcome, fault: judged.find(({ fault }) => fault)?.fault ?? taken };
}

export function judgeLines(bytes, { lines, complete }) {
  if (!complete)
    return { outcome: 'late', fault: `no answer in time; there came ${lines.join('|').slice(0, 200)}` };
  const request = bytes.toString('utf8');
  for (const line of lines) {
    const shown = shownIn(line, request);
    if (shown) return { outcome: 'shown', fault: shown };
  }
  const messages = lines.map((line) => messagesIn(line)).filter((one) => one === null || one.length > 0);
  if (messages.includes(null)) return { outcome: 'odd', fault: 'a line is no JSON' };
  const judged = messages.flat().map(judgedMessage);
  if (judged.length === 0) return { outcome: 'no answer', fault: null };
  const outcome = judged.length > 1 ? 'several messages' : judged[0].outcome;
  const taken = takenFrom(request, lines.join('\n'), { outcome });
  return { outcome, fault: judged.find(({ fault }) => fault)?.fault ?? taken };
}

/** The one that the generator writes, as the value of a member. */
const ROUNDED_IN_YAML = /^[^#'"|>]*: 9007199254740993$/m;

/** @param text of the file: an error may repeat what it says */
export function judgeLoad(thrown, text) {
  if (thrown === null) {
    const rounded = ROUNDED_IN_YAML.test(text);
    return { outcome: 'ok', fault: rounded ? 'a number that readers round was taken' : null };
  }
  const { error, isConfigError } = thrown;
  if (!isConfigError)
    return {
      outcome: 'thrown',
      fault: `another error than ConfigError: ${String(error?.stack ?? error).slice(0, 800)}`,
    };
  const unnamed = error.issues.find(
    ({ path, message }) => typeof path !== 'string' || typeof message !== 'string' || message === '',
  );
  if (error.issues.length === 0 || unnamed)
    return { outcome: 'odd', fault: `an issue without a path or a text: ${JSON.stringify(unnamed)}` };
  const shown = shownIn(error.issues.map(({ message }) => message).join('\n'), text);
  return {
    outcome: error.issues.some(({ path }) => path === '') ? 'refused as a file' : 'refused at a path',
    fault: shown,
  };
}

/** Whether a line on a pipe must be answered: true, false, or null where either is right. */
export function isDue(bytes) {
  const text = withoutMark(bytes.toString('utf8'));
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
