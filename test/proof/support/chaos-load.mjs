// The callers of chaos. Each does one kind of work as a patient client would, and writes down what it was promised and what it got.
import { setTimeout as pause } from 'node:timers/promises';
import { checkSets, proposeSets } from './chaos-sets.mjs';
import { as, EXPORTED } from './chaos-stage.mjs';
import { ModernClient, SessionClient, TASKS } from './modern-client.mjs';

/** Milliseconds after which a request that was not answered at all is a loss. A call that waits for an approver may take twenty seconds. */
const NO_ANSWER = 40_000;
/** Milliseconds that a caller tries again before its work counts as lost: longer than every fault together. */
const PATIENCE = 90_000;
/** Milliseconds within which a subscriber is to be notified of a change. */
export const TOLD_WITHIN = 20_000;

/** What an answer was, in a few words, and whether a caller can go on from it. */
function verdict({ status, result, error, text }) {
  if (result && !result.isError) return { good: true };
  if (result) {
    const code = result._meta?.['parse.error_code'];
    return { why: `refused: ${code}`, unclear: !code || code === 'internal_error' };
  }
  if (error) return { why: `HTTP ${status}, ${error.code}`, unclear: error.message === 'Internal error' };
  return { why: `HTTP ${status}`, unclear: status < 400 && text !== '' };
}

/** What happened, counted, and everything that was lost. */
export class Seen {
  losses = [];
  counts = {};
  answers = new Map();
  /** Title of each row that somebody asked for: whether it was accepted or certainly refused, and whether the request carried a key. */
  written = new Map();
  /** Ids of the change sets that somebody proposed, by the title of their rows. */
  sets = new Map();
  #began = performance.now();
  #perSecond = { answered: new Map(), refused: new Map() };
  #lastGood = performance.now();
  #losesConnections;
  #internal;
  longestGap = 0;
  requests = 0;

  /**
   * @param {object} options
   * @param {boolean} [options.losesConnections] requests that are never answered are counted, and are no loss
   * @param {RegExp} [options.internal] what no answer may contain
   */
  constructor({ losesConnections = false, internal } = {}) {
    this.#losesConnections = losesConnections;
    this.#internal = internal;
  }

  get second() {
    return (performance.now() - this.#began) / 1000;
  }

  /** Seconds from the start until a moment. */
  at(moment) {
    return ((moment - this.#began) / 1000).toFixed(1);
  }

  count(name) {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  lose(sentence) {
    this.losses.push(`${this.second.toFixed(1)} s: ${sentence}`);
  }

  #mark(kind, why) {
    const name = why === undefined ? 'answered' : 'refused';
    const at = Math.floor(this.second);
    this.#perSecond[name].set(at, (this.#perSecond[name].get(at) ?? 0) + 1);
    if (why !== undefined) {
      const key = `${kind}: ${why}`;
      this.answers.set(key, (this.answers.get(key) ?? 0) + 1);
    } else {
      this.longestGap = Math.max(this.longestGap, performance.now() - this.#lastGood);
      this.#lastGood = performance.now();
    }
  }

  /** @returns the answer with `good`, or undefined where there was none: the connection was cut, or a proxy answered */
  async ask(kind, send) {
    let answer;
    this.requests += 1;
    try {
      answer = await send(AbortSignal.timeout(NO_ANSWER));
    } catch (error) {
      const { name } = /** @type {Error} */ (error);
      if (name === 'TimeoutError')
        if (this.#losesConnections) this.count('requests that were never answered');
        else this.lose(`${kind} was not answered within ${NO_ANSWER / 1000} s`);
      this.#mark(kind, name === 'SyntaxError' ? 'an answer cut in the middle' : 'connection cut');
      return undefined;
    }
    const { good = false, why, unclear } = verdict(answer);
    this.#mark(kind, good ? undefined : why);
    if (unclear)
      this.lose(`${kind} got an unclear answer, HTTP ${answer.status}: ${answer.text.slice(0, 300)}`);
    const internal = this.#internal?.exec(answer.text);
    if (internal)
      this.lose(
        `${kind} was answered with something internal, '${internal[0]}': ${answer.text.slice(0, 300)}`,
      );
    return { ...answer, good };
  }

  /**
   * Sends the same until it succeeds.
   * @param {string} kind
   * @param {(signal: AbortSignal) => Promise<any>} send
   * @param {{ lost?: (answer: any) => unknown }} [options] `lost` gives the reason why no further answer can be a good one
   * @returns the answer, or undefined after a loss was written down
   */
  async insist(kind, send, { lost = () => undefined } = {}) {
    const deadline = performance.now() + PATIENCE;
    let last;
    while (performance.now() < deadline) {
      const answer = await this.ask(kind, send);
      if (answer?.good) return answer;
      last = answer ?? last;
      const reason = answer && lost(answer);
      if (reason) {
        this.lose(`${kind}: ${reason}: ${answer.text.slice(0, 300)}`);
        return undefined;
      }
      await pause(150);
    }
    this.lose(
      `${kind} did not succeed within ${PATIENCE / 1000} s; last: ${last?.text.slice(0, 300) ?? 'no answer'}`,
    );
    return undefined;
  }

  /** Lines of the chart: answers and refusals in each second. */
  get lines() {
    return Object.entries(this.#perSecond).map(([name, counts]) => ({
      name,
      points: Array.from({ length: Math.ceil(this.second) }, (_, at) => [at, counts.get(at) ?? 0]),
    }));
  }
}

/** A long conversation in one session, whichever replica answers: plain answers and streamed ones. */
export async function converse({ url }, seen, going) {
  const client = new SessionClient(url, as('reader'));
  await seen.insist('initialize', () => client.initialize());
  const read = { name: 'get_object', arguments: { class_name: 'Item', object_id: 'first' } };
  const slow = { name: 'slow_count', arguments: { class_name: 'Fixed', milliseconds: 300 } };
  const lost = ({ status }) => status === 404 && 'the session was lost';
  for (let turn = 0; going(); turn += 1) {
    const streamed = turn % 8 === 7;
    const options = streamed ? {} : { accept: 'application/json' };
    const answer = await seen.insist(
      'a call of a session',
      (signal) => client.ask('tools/call', streamed ? slow : read, { ...options, signal }),
      { lost },
    );
    if (!answer) return;
    const { object, count } = answer.result.structuredContent;
    if (streamed ? count !== EXPORTED : object?.title !== 'first')
      seen.lose(`a call of a session was answered wrongly: ${answer.text.slice(0, 200)}`);
    seen.count('calls of sessions');
    await pause(30);
  }
}

/** Requests that stand alone, of a person whose tokens are signed with a key that changes. */
export async function askWithTokens({ url, issuer }, seen, going, subject) {
  let token = await issuer.token(subject);
  const client = new ModernClient(url, () => ({ Authorization: `Bearer ${token}` }));
  const works = [
    (signal) => client.call('query_class', { class_name: 'Fixed', limit: 5 }, { signal }),
    (signal) => client.call('aggregate', { class_name: 'Fixed', pipeline: [{ $count: 'n' }] }, { signal }),
    (signal) => client.ask('tools/list', {}, { signal }),
  ];
  const lost = ({ status }) => status === 401 && 'a good token was refused';
  for (let turn = 0; going(); turn += 1) {
    token = await issuer.token(subject);
    await seen.insist('a request with a token', works[turn % works.length], { lost });
    seen.count('requests with tokens');
    await pause(30);
  }
}

/**
 * Writes that a person at the client and another one have to approve. Without a key the same round is repeated until it is answered: its
 * approval serves one call. With one, everything is repeated until the write succeeds.
 */
export async function write({ url }, seen, going, { name, keyed }) {
  const client = new ModernClient(url, as('writer'));
  for (let n = 0; going(); n += 1) {
    const title = `${name}-${n}`;
    const key = keyed ? { idempotency_key: `key-of-${title}` } : {};
    const args = { class_name: 'Item', fields: { title, rank: n }, ...key };
    const deadline = performance.now() + PATIENCE;
    let accepted = false;
    let uncertain = false;
    let round = {};
    let last;
    while (performance.now() < deadline) {
      const answer = await seen.ask('a write', (signal) =>
        client.call('create_object', args, { ...round, signal }),
      );
      last = answer ?? last;
      if (answer?.result?.resultType === 'input_required') {
        const [question] = Object.keys(answer.result.inputRequests ?? {});
        const inputResponses = question && { [question]: { action: 'accept', content: { approve: true } } };
        round = { requestState: answer.result.requestState, ...(question && { inputResponses }) };
        continue;
      }
      accepted = answer?.good ?? false;
      if (accepted) break;
      uncertain ||=
        !answer || answer.status >= 500 || answer.result?._meta?.['parse.details']?.outcome === 'unknown';
      await pause(150);
      const decided = answer?.result !== undefined || answer?.error !== undefined;
      if (decided && !keyed && answer.status < 500) break;
      if (decided && answer.status < 500) round = {};
    }
    seen.written.set(title, { accepted, refused: !accepted && !uncertain, keyed });
    seen.count(accepted ? `writes ${keyed ? 'with' : 'without'} a key` : 'writes not accepted');
    if (keyed && !accepted)
      seen.lose(`the write ${title} did not succeed; last: ${last?.text.slice(0, 300) ?? 'no answer'}`);
    await pause(30);
  }
}

/** Every row against what its writer was told. */
async function checkWrites(rows, seen) {
  const counted = new Map();
  for await (const { title } of rows.collection('Item').find({}, { projection: { title: 1 } }))
    counted.set(title, (counted.get(title) ?? 0) + 1);
  for (const [title, { accepted, refused, keyed }] of seen.written) {
    const count = counted.get(title) ?? 0;
    const [known, isLost] = accepted
      ? ['accepted', count !== 1]
      : refused
        ? ['refused', count > 0]
        : ['uncertain', count > 1];
    if (isLost)
      seen.lose(`the ${known} write ${title}${keyed ? ', with a key,' : ''} happened ${count} times`);
  }
}

/** The other person: approves every case that it finds. */
async function approve({ origin }, seen, going) {
  const headers = { ...as('chief'), 'Content-Type': 'application/json' };
  /** @returns {Promise<any>} */
  const ask = async (path) =>
    (await fetch(`${origin}${path}`, { headers, signal: AbortSignal.timeout(NO_ANSWER) })).json();
  while (going()) {
    try {
      const { approvals = [] } = await ask('/approvals');
      for (const { id } of approvals) {
        const { digest } = await ask(`/approvals/${id}`);
        const body = JSON.stringify({ decision: 'approve', digest });
        const { ok } = await fetch(`${origin}/approvals/${id}`, { method: 'POST', headers, body });
        if (ok) seen.count('cases approved');
      }
    } catch {
      // Asked again.
    }
    await pause(100);
  }
}

export async function runTasks({ url }, seen, going) {
  const client = new ModernClient(url, as('worker'));
  const lost = ({ error }) => error?.code === -32_602 && 'the task was lost';
  while (going()) {
    const args = { class_name: 'Fixed', milliseconds: 1_500 };
    const begun = await seen.ask('a task', (signal) =>
      client.call('slow_count', args, { extensions: { [TASKS]: {} }, signal }),
    );
    const { taskId } = begun?.result ?? {};
    if (!taskId) {
      await pause(150);
      continue;
    }
    const deadline = performance.now() + PATIENCE;
    let state = begun.result;
    while (state?.status === 'working' && performance.now() < deadline) {
      await pause(250);
      state = (
        await seen.insist('tasks/get', (signal) => client.ask('tasks/get', { taskId }, { signal }), { lost })
      )?.result;
    }
    if (state?.status === 'completed' && !state.result?.isError) seen.count('tasks completed');
    else if (
      state?.status === 'completed' ||
      (state?.status === 'failed' && JSON.stringify(state).includes('message'))
    )
      seen.count('tasks that failed with a reason');
    else if (state) seen.lose(`a task did not end: ${JSON.stringify(state).slice(0, 300)}`);
  }
}

/** Orders files and fetches them: one that ends without an error has every row. */
export async function fetchExports({ url, origin }, seen, going) {
  const client = new ModernClient(url, as('reader'));
  const order = { class_name: 'Fixed', delivery: 'resource', format: 'csv', columns: ['title'] };
  while (going()) {
    const ordered = await seen.insist('an export', (signal) => client.call('export_data', order, { signal }));
    if (!ordered) return;
    const { path } = ordered.result.structuredContent;
    try {
      const response = await fetch(new URL(path, origin), {
        headers: as('reader'),
        signal: AbortSignal.timeout(NO_ANSWER),
      });
      const text = await response.text();
      const rows = text.trim().split('\n').length - 1;
      if (response.ok && rows !== EXPORTED) seen.lose(`a file that ended without an error has ${rows} rows`);
      else seen.count(response.ok ? 'files fetched' : 'files refused');
    } catch {
      seen.count('files cut');
    }
    await pause(200);
  }
}

/** A change of a class by another program, with the time from which on it can be seen, and the time when it was there. */
export async function changeOnce({ rows }, changes, id) {
  const began = performance.now();
  const inserted = await rows
    .collection('News')
    .insertOne({ _id: id, title: `news ${id}`, _created_at: new Date(), _updated_at: new Date() })
    .then(
      () => true,
      () => false,
    );
  // An insertion without an answer may have happened: only those that certainly did are waited for.
  if (inserted) changes.push({ at: began, made: performance.now() });
}

/** @param isQuiet whether there are no changes for the moment */
export async function change(stage, changes, going, isQuiet = () => false) {
  for (let n = 0; going(); n += 1) {
    if (!isQuiet()) await changeOnce(stage, changes, `n${n}`);
    await pause(700);
  }
}

const NEWS = 'parse://News/count';
const isTold = ({ method, params }) => method === 'notifications/resources/updated' && params?.uri === NEWS;

/** Keeps a stream open. @returns when it was opened, when it ended, and when it sent a notification */
function watcher(going, seen, open) {
  const events = [];
  const mark = (kind) => events.push({ kind, at: performance.now() });
  const over = (async () => {
    while (going()) {
      const stream = await open((message) => isTold(message) && mark('told')).catch(() => undefined);
      if (!stream?.isOpen) {
        if (stream?.status === 404) {
          seen.lose(`the session of a subscriber was lost: ${stream.refusal}`);
          return;
        }
        await pause(150);
        continue;
      }
      mark('opened');
      seen.count('streams opened');
      const leaving = setInterval(() => going() || stream.close(), 100);
      await stream.ended;
      clearInterval(leaving);
      if (going()) mark('ended');
    }
  })();
  return { events, over };
}

/** A subscriber without a session reads what it watches whenever its stream opens; one with a session is notified when it is back. */
function watchChanges({ url }, seen, going) {
  const modern = new ModernClient(url, as('watcher'));
  return {
    name: 'of 2026-07-28',
    readsWhenOpened: true,
    ...watcher(going, seen, (hear) => modern.listen({ resourceSubscriptions: [NEWS] }, hear)),
  };
}

async function watchInSession({ url }, seen, going) {
  const client = new SessionClient(url, as('watcher'));
  await seen.insist('initialize', () => client.initialize());
  await seen.insist('a subscription', (signal) =>
    client.ask('resources/subscribe', { uri: NEWS }, { signal }),
  );
  return {
    name: 'of 2025-11-25',
    readsWhenOpened: false,
    ...watcher(going, seen, (hear) => client.listen(hear)),
  };
}

/**
 * Writes down each change of which a subscriber neither heard nor learned that it missed something, and counts how it learned: on the open
 * stream, or because that stream ended. A subscriber that was away is notified after it is back; without a session, being back is enough.
 */
function checkTold(changes, { name, events, readsWhenOpened }, seen, until) {
  const first = (from, ...kinds) =>
    events.find(({ at, kind }) => at >= from && kinds.includes(kind))?.at ?? Infinity;
  for (const { at, made } of changes) {
    const before = events.findLast((event) => event.at <= at && event.kind !== 'told');
    const wasOpen = before?.kind === 'opened';
    const told = first(at, 'told');
    const ended = wasOpen ? first(at, 'ended') : at;
    const late = Math.min(made + TOLD_WITHIN, ended);
    const back = first(ended, 'opened');
    if (wasOpen && told <= late) seen.count(`changes notified on an open stream, subscriber ${name}`);
    else if (ended > made + TOLD_WITHIN) {
      if (made + TOLD_WITHIN < until)
        seen.lose(
          `a subscriber ${name} was not notified within ${TOLD_WITHIN / 1000} s of the change at ${seen.at(at)} s`,
        );
    } else if (back === Infinity || (!readsWhenOpened && first(back, 'told') > back + TOLD_WITHIN)) {
      if (back !== Infinity && back + TOLD_WITHIN < until)
        seen.lose(`a subscriber ${name} came back after the change at ${seen.at(at)} s and was not notified`);
    } else seen.count(`changes learned by coming back, subscriber ${name}`);
  }
}

/** Milliseconds that the last changes have to be notified as well. */
const LAST_CHANGES = 3_000;

/**
 * Work that goes on until all other work has ended: two subscribers, and who decides approvals.
 * @returns the subscribers, and what ends them and compares what they and the writers received with `changes` and the stored rows
 */
export async function accompany(stage, seen, changes) {
  let working = true;
  const going = () => working;
  const watchers = [watchChanges(stage, seen, going), await watchInSession(stage, seen, going)];
  const approving = approve(stage, seen, going);
  return {
    watchers,
    async end() {
      await pause(LAST_CHANGES);
      const until = performance.now();
      working = false;
      await Promise.all([approving, ...watchers.map(({ over }) => over)]);
      for (const one of watchers) checkTold(changes, one, seen, until);
      await checkWrites(stage.rows, seen);
      await checkSets(stage.rows, seen);
    },
  };
}

/** Asks services to end. */
export async function stopAll(services, seen) {
  const codes = await Promise.all(services.map((service) => service.stop()));
  if (codes.some((code) => code !== 0))
    seen.lose(`services that were asked to end ended with ${codes.join(', ')}`);
}

/** What every stage is put under, besides what is its own. */
export const doUsualWork = (stage, seen, going) => [
  converse(stage, seen, going),
  askWithTokens(stage, seen, going, 'ada'),
  askWithTokens(stage, seen, going, 'ben'),
  write(stage, seen, going, { name: 'keyed', keyed: true }),
  write(stage, seen, going, { name: 'plain', keyed: false }),
  write(stage, seen, going, { name: 'other', keyed: false }),
  proposeSets(stage, seen, going),
  runTasks(stage, seen, going),
  fetchExports(stage, seen, going),
];
