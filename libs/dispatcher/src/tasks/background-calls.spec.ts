import { describe, expect, it } from 'vitest';
import { type ClientRequests, type FormQuestion, type JsonObject, type McpRequest } from '#core';
import { ProcessOneTimeStore } from '#state';
import type { RequestStateContent } from '../client-requests/request-state.js';
import { smallAgent, smallTool, SmallToolRunner, succeeded } from '../contracts/kernel-under-test.js';
import { BackgroundCalls } from './background-calls.js';

const form = (field: string): FormQuestion => ({
  kind: 'form',
  message: `What is ${field}?`,
  schema: { type: 'object', properties: { [field]: { type: 'boolean' } }, required: [field] },
});
const yes = (field: string) => ({ action: 'accept', content: { [field]: true } });

/** A task whose tool makes a call that needs an approval, and then asks a question. */
function beginTask() {
  let approved = 0;
  const runner = new SmallToolRunner().add(smallTool('delegating'), async (_, context: McpRequest) => {
    const asking = context.clientRequests as ClientRequests;
    const answer = await asking.within().ask('approve', form('approve'), { once: { holdsFor: 'row' } });
    if (answer.action === 'accept') approved += 1;
    await asking.ask('enough', form('enough'));
    return succeeded({ approved });
  });
  const journal = { record: () => undefined, recordTaskEnd: () => undefined };
  const calls = new BackgroundCalls(runner, { warn: () => undefined }, journal);
  const used = new ProcessOneTimeStore();
  const run = (soFar?: RequestStateContent, responses: JsonObject = {}) =>
    calls.run({
      taskId: 'task',
      agent: smallAgent(),
      tool: 'delegating',
      args: {},
      version: '2026-07-28',
      capabilities: { elicitation: {} },
      soFar,
      responses,
      signal: new AbortController().signal,
      useOnce: (name) => used.claim(name, 60_000, 'ada'),
      beforeChange: () => Promise.resolve(),
      claimEnd: () => Promise.resolve(true),
      progress: () => undefined,
    });
  const asked = async (...given: Parameters<typeof run>) => {
    const outcome = await run(...given);
    if (outcome.kind !== 'input') return expect.unreachable(JSON.stringify(outcome));
    return { soFar: outcome.soFar, key: Object.keys(outcome.requests)[0] ?? '' };
  };
  return { run, asked, countApproved: () => approved };
}

describe('an approval of what a task calls', () => {
  it('serves one run, and is asked for again by the next', async () => {
    const { run, asked, countApproved } = beginTask();
    const first = await asked();
    const second = await asked(first.soFar, { [first.key]: yes('approve') });
    expect(second.key).toBe('enough');
    const third = await asked(second.soFar, { enough: yes('enough') });
    expect(third.key).toBe(first.key);
    expect(await run(third.soFar, { [third.key]: yes('approve') })).toMatchObject({ kind: 'result' });
    expect(countApproved()).toBe(2);
  });

  it('that was used is asked for again where the run begins again, and nothing runs with it', async () => {
    const { asked, countApproved } = beginTask();
    const first = await asked();
    const given = { [first.key]: yes('approve') };
    await asked(first.soFar, given);
    const again = await asked(first.soFar, given);
    expect(again.key).toBe(first.key);
    expect(countApproved()).toBe(1);
    expect((await asked(again.soFar, given)).key).toBe('enough');
    expect(countApproved()).toBe(2);
  });
});
