// Change sets amid chaos: what is proposed is applied as one or not at all, taken back as one or not at all, and the set knows which.
import { setTimeout as pause } from 'node:timers/promises';
import { as } from './chaos-stage.mjs';
import { ModernClient } from './modern-client.mjs';

/** Rows of a set. */
const ROWS = 6;
/** Milliseconds that a caller tries again before its work counts as lost: longer than every fault together. */
const PATIENCE = 90_000;

/** Proposes sets, submits each until it is applied, and takes every other one back. */
export async function proposeSets({ url }, seen, going) {
  const client = new ModernClient(url, as('proposer'));
  for (let n = 0; going(); n += 1) {
    const title = `set-${n}`;
    const set = await propose(client, seen, title);
    if (set === undefined) return;
    seen.sets.set(title, set);
    const submitted = { change_set: set, title, reason: 'chaos' };
    const isApplied = ({ state }) => state === 'applied';
    if (!(await carryOut(client, seen, { name: 'submit_changes', args: submitted, isDone: isApplied })))
      return;
    seen.count('change sets applied');
    if (n % 2 === 0) continue;
    const isUndone = ({ undone_by: undo }) => undo !== undefined;
    const undone = { name: 'undo_changes', args: { change_set: set }, isDone: isUndone };
    if (!(await carryOut(client, seen, undone))) return;
    seen.count('change sets taken back');
  }
}

/** @returns the id of the set that holds all of the rows; undefined after a loss was written down */
async function propose(client, seen, title) {
  let set;
  for (let row = 0; row < ROWS; row += 1) {
    const args = {
      class_name: 'Item',
      fields: { title, rank: row },
      idempotency_key: `key-of-${title}-${row}`,
    };
    const answer = await seen.insist('a proposal', (signal) =>
      client.call('create_object', args, { signal }),
    );
    if (!answer) return undefined;
    const { change_set: id } = answer.result.structuredContent;
    set ??= id;
    if (id !== set) seen.lose(`a row of the set ${title} went to another one`);
  }
  return set;
}

/** Asks until the set says that it is done, whatever is answered: an answer that was lost may have been a good one. */
async function carryOut(client, seen, { name, args, isDone }) {
  const deadline = performance.now() + PATIENCE;
  let round = {};
  let last;
  while (performance.now() < deadline) {
    const answer = await seen.ask(name, (signal) => client.call(name, args, { ...round, signal }));
    last = answer ?? last;
    if (answer?.result?.resultType === 'input_required') {
      const [question] = Object.keys(answer.result.inputRequests ?? {});
      const inputResponses = question && { [question]: { action: 'accept', content: { approve: true } } };
      round = { requestState: answer.result.requestState, ...(question && { inputResponses }) };
      continue;
    }
    round = {};
    const { change_set: set } = args;
    const shown = await seen.insist('show_changes', (signal) =>
      client.call('show_changes', { change_set: set }, { signal }),
    );
    if (!shown) return false;
    if (isDone(shown.result.structuredContent)) return true;
    if (answer?.good) seen.lose(`${name} was answered, and the set is not what it says`);
    await pause(150);
  }
  seen.lose(
    `${name} did not succeed within ${PATIENCE / 1000} s; last: ${last?.text.slice(0, 300) ?? 'no answer'}`,
  );
  return false;
}

/** The rows of every set against what the set says. */
export async function checkSets(rows, seen) {
  for (const [title, id] of seen.sets) {
    const set = await rows.collection('parley.changes').findOne({ _id: id });
    const isThere = set?.state === 'applied' && set.undoneBy === undefined;
    const count = await rows.collection('Item').countDocuments({ title });
    if (count !== (isThere ? ROWS : 0))
      seen.lose(
        `${count} of the ${ROWS} rows of the set ${title} are there, and it is ${set?.state ?? 'lost'}${set?.undoneBy ? ', taken back' : ''}`,
      );
  }
}
