import { describe, expect, it } from 'vitest';
import { type McpRequest, type ClientQuestion, type FormQuestion, ApprovedCallChanged } from '#core';
import { ProcessOneTimeStore } from '#state';
import { InputRounds } from './input-rounds.js';
import { processSecret, RequestStateSeal } from './request-state.js';
import {
  kernelUnderTest,
  MODERN,
  readResult,
  smallAgent,
  type SmallHandler,
  smallTool,
  SmallToolRunner,
  succeeded,
} from '../contracts/kernel-under-test.js';
import type { KernelReply } from '../protocol.js';

const form = (message: string, field = 'name'): FormQuestion => ({
  kind: 'form',
  message,
  schema: { type: 'object', properties: { [field]: { type: 'string', minLength: 2 } }, required: [field] },
});
const accept = (content: object) => ({ action: 'accept', content });
const FORMS = { clientCapabilities: { elicitation: {} }, ...MODERN };

interface Round {
  readonly inputRequests?: Record<string, { method: string; params: Record<string, unknown> }>;
  readonly requestState?: string;
  readonly resultType?: string;
  readonly content?: readonly { text: string }[];
}

function served(handler: SmallHandler, lifetime = 60_000, oneTime = new ProcessOneTimeStore()) {
  const tools = new SmallToolRunner().add(smallTool('asking'), handler);
  const seal = new RequestStateSeal(processSecret(), { timeout: lifetime });
  const rounds = new InputRounds(seal, oneTime, { timeout: 1_000 });
  return kernelUnderTest(tools, undefined, { rounds });
}

const asks = (context: McpRequest) => {
  if (!context.clientRequests) throw new Error('nobody to ask');
  return context.clientRequests;
};

const greeter: SmallHandler = async (_, context) => {
  const answer = await asks(context).ask('user_name', form('What is your name?'));
  return succeeded(answer.action === 'accept' ? { hello: answer.content['name'] } : { hello: null });
};

/** Makes a call and repeats it with the client's answers. */
function caller({ ask }: ReturnType<typeof served>, args: object = {}) {
  const call = async (more: object = {}, context: object = FORMS) =>
    readResult(await ask('tools/call', { name: 'asking', arguments: args, ...more }, context)) as Round;
  return {
    call,
    refuse: async (more: object, context: object = FORMS, given: object = args) =>
      ask('tools/call', { name: 'asking', arguments: given, ...more }, context),
  };
}

const REPLAY = { error: { code: -32602, message: 'Invalid or expired requestState' } };
const codeOf = (reply: KernelReply) => ('error' in reply ? reply.error.code : undefined);

describe('a question in the stateless era', () => {
  it('becomes the answer of the call, and its answer is given to the run that follows', async () => {
    const { call } = caller(served(greeter));
    const first = await call();
    expect(first).toMatchObject({
      resultType: 'input_required',
      inputRequests: {
        user_name: {
          method: 'elicitation/create',
          params: { mode: 'form', message: 'What is your name?', requestedSchema: { required: ['name'] } },
        },
      },
    });
    const { requestState } = first;
    const second = await call({ requestState, inputResponses: { user_name: accept({ name: 'Ada' }) } });
    expect(second).toMatchObject({ resultType: 'complete', structuredContent: { hello: 'Ada' } });
  });

  it('is not answered by what comes without a state of ours', async () => {
    const { call } = caller(served(greeter));
    const answered = await call({ inputResponses: { user_name: accept({ name: 'Ada' }) } });
    expect(answered.resultType).toBe('input_required');
  });

  it('is asked again when its answer is missing or does not fit, and other answers are ignored', async () => {
    const { call } = caller(served(greeter));
    const { requestState } = await call();
    for (const inputResponses of [
      {},
      { other: accept({ name: 'Ada' }) },
      { user_name: accept({ name: 'A' }) },
      { user_name: { action: 'accept' } },
    ]) {
      expect((await call({ requestState, inputResponses })).inputRequests).toHaveProperty('user_name');
    }
    const inputResponses = { user_name: accept({ name: 'Ada' }), other: 7 };
    expect((await call({ requestState, inputResponses })).resultType).toBe('complete');
  });

  it('that is a decision is cancelled by an answer that does not fit, and is not asked again', async () => {
    const decider: SmallHandler = async (_, context) => {
      const answer = await asks(context).ask('user_name', form('Name?'), { once: { holdsFor: 'row' } });
      return succeeded({ action: answer.action });
    };
    for (const sent of [{ action: 'accept' }, accept({}), accept({ name: 7 })]) {
      const { call, refuse: refused } = caller(served(decider));
      const { requestState } = await call();
      const given = { requestState, inputResponses: { user_name: sent } };
      expect(await call(given)).toMatchObject({ structuredContent: { action: 'cancel' } });
      const fits = { requestState, inputResponses: { user_name: accept({ name: 'Ada' }) } };
      expect(await refused(fits)).toMatchObject(REPLAY);
    }
  });

  it.each([
    [{ user_name: 7 }],
    [{ user_name: { action: 'maybe' } }],
    [{ user_name: accept([]) }],
    [null],
    [[]],
  ])('refuses what is no answer at all: %j', async (inputResponses) => {
    const { call, refuse: refused } = caller(served(greeter));
    const { requestState } = await call();
    expect(codeOf(await refused({ requestState, inputResponses }))).toBe(-32602);
  });

  it('keeps earlier answers over the rounds', async () => {
    const { call } = caller(
      served(async (_, context) => {
        const one = await asks(context).ask('one', form('One?'));
        const two = await asks(context).ask('two', form('Two?'));
        return succeeded(
          [one, two].map((answer) => answer.action === 'accept' && answer.content['name']),
          false,
        );
      }),
    );
    const first = await call();
    const second = await call({
      requestState: first.requestState,
      inputResponses: { one: accept({ name: 'eins' }) },
    });
    expect(Object.keys(second.inputRequests ?? {})).toEqual(['two']);
    expect(second.requestState).not.toBe(first.requestState);
    const third = await call({
      requestState: second.requestState,
      inputResponses: { two: accept({ name: 'zwei' }), one: accept({ name: 'changed' }) },
    });
    expect(JSON.parse(third.content?.[0]?.text ?? '')).toEqual(['eins', 'zwei']);
  });

  it('travels with the others of its round, each in its own form', async () => {
    const questions: Record<string, ClientQuestion> = {
      name: form('Who?'),
      page: { kind: 'url', message: 'Open', url: 'https://example.com/' },
      text: { kind: 'sampling', params: { messages: [], maxTokens: 5 } },
      folders: { kind: 'roots' },
    };
    const { call } = caller(
      served(async (_, context) => {
        const entries = Object.entries(questions).map(([key, question]) => asks(context).ask(key, question));
        return succeeded(await Promise.all(entries), false);
      }),
    );
    const clientCapabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
    const context = { ...MODERN, clientCapabilities };
    const { inputRequests, requestState } = await call({}, context);
    expect(Object.values(inputRequests ?? {}).map(({ method }) => method)).toEqual([
      'elicitation/create',
      'elicitation/create',
      'sampling/createMessage',
      'roots/list',
    ]);
    const inputResponses = {
      name: { action: 'decline' },
      page: { action: 'accept' },
      text: { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' },
      folders: { roots: [{ uri: 'file:///work' }] },
    };
    const done = await call({ requestState, inputResponses }, context);
    expect(JSON.parse(done.content?.[0]?.text ?? '')).toEqual(Object.values(inputResponses));
  });

  it.each([
    [{}, { elicitation: { form: {} } }],
    [{ elicitation: { url: {} } }, { elicitation: { form: {} } }],
    [{ elicitation: true }, { elicitation: { form: {} } }],
  ])('is refused with -32021 when the request declares only %j', async (clientCapabilities, required) => {
    const { refuse: refused } = caller(served(greeter));
    expect(await refused({}, { ...MODERN, clientCapabilities })).toEqual({
      error: {
        code: -32021,
        message: 'Missing required client capability',
        data: { requiredCapabilities: required },
      },
      status: 400,
    });
  });

  it('that can never be answered refuses the round, whatever else was asked', async () => {
    const { refuse: refused } = caller(
      served(async (_, context) =>
        succeeded(
          await Promise.all([asks(context).ask('a', form('A?')), asks(context).ask('b', { kind: 'roots' })]),
        ),
      ),
    );
    expect(codeOf(await refused({}))).toBe(-32021);
  });

  it('that a handler swallows still has to be answered first', async () => {
    const { call } = caller(
      served(async (_, context) => {
        await asks(context)
          .ask('name', form('Who?'))
          .catch(() => undefined);
        return succeeded('went on');
      }),
    );
    expect((await call()).resultType).toBe('input_required');
  });

  it('can be asked by a prompt, and its answer is not one for another prompt', async () => {
    const served_ = served(greeter);
    for (const name of ['ask_one', 'ask_two']) {
      served_.prompts.register({
        name,
        description: name,
        arguments: [],
        render: async ({ ask }) => JSON.stringify(await ask('context', form('Which context?', 'context'))),
      });
    }
    const first = readResult(await served_.ask('prompts/get', { name: 'ask_one' }, FORMS)) as Round;
    expect(first.inputRequests).toHaveProperty('context');
    const more = {
      requestState: first.requestState,
      inputResponses: { context: accept({ context: 'sales' }) },
    };
    const done = readResult(await served_.ask('prompts/get', { name: 'ask_one', ...more }, FORMS));
    expect(JSON.stringify(done)).toContain('sales');
    expect(await served_.ask('prompts/get', { name: 'ask_two', ...more }, FORMS)).toMatchObject(REPLAY);
  });

  it('leaves no cache hint on the answer of a resource', async () => {
    const tools = new SmallToolRunner().add(smallTool('count_objects'), greeter);
    const seal = new RequestStateSeal(processSecret(), { timeout: 60_000 });
    const rounds = new InputRounds(seal, new ProcessOneTimeStore(), { timeout: 1_000 });
    const { ask } = kernelUnderTest(tools, undefined, { rounds });
    const requested = readResult(await ask('resources/read', { uri: 'parse://Post/count' }, FORMS));
    expect(requested).toMatchObject({ resultType: 'input_required' });
    expect(requested).not.toHaveProperty('ttlMs');
    const { requestState } = requested as Round;
    const inputResponses = { user_name: accept({ name: 'Ada' }) };
    const read = await ask(
      'resources/read',
      { uri: 'parse://Post/count', requestState, inputResponses },
      FORMS,
    );
    expect(readResult(read)).toMatchObject({ resultType: 'complete', cacheScope: 'private' });
  });
});

describe('a request state at the kernel', () => {
  const answers = { user_name: accept({ name: 'Ada' }) };

  it.each([
    ['another principal', { agent: smallAgent({}, 'eve') }, {}],
    ['another tenant', { agent: smallAgent({ tenantId: 'other' }) }, {}],
    ['other arguments', {}, { a: 2 }],
  ])('is refused for %s', async (_, context, args) => {
    const { call, refuse: refused } = caller(served(greeter), { a: 1 });
    const { requestState } = await call();
    const given = 'a' in args ? args : { a: 1 };
    const reply = await refused({ requestState, inputResponses: answers }, { ...FORMS, ...context }, given);
    expect(reply).toMatchObject(REPLAY);
  });

  it('holds whatever order the arguments come in', async () => {
    const service = served(greeter);
    const { requestState } = await caller(service, { a: 1, b: { c: 2, d: 3 } }).call();
    const again = caller(service, { b: { d: 3, c: 2 }, a: 1 });
    expect((await again.call({ requestState, inputResponses: answers })).resultType).toBe('complete');
  });

  it.each([['nonsense'], [''], [7], [null], [{}]])('is refused when it is %j', async (requestState) => {
    const { refuse: refused } = caller(served(greeter));
    expect(await refused({ requestState, inputResponses: answers })).toMatchObject(REPLAY);
  });

  it('is refused after its time, also for a call that asks nothing', async () => {
    const { call, refuse: refused } = caller(served(greeter, 1));
    const { requestState } = await call();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await refused({ requestState })).toMatchObject(REPLAY);
  });

  it('serves an ordinary answer again, for a client whose connection broke', async () => {
    const { call } = caller(served(greeter));
    const { requestState } = await call();
    for (let times = 0; times < 2; times++)
      expect((await call({ requestState, inputResponses: answers })).resultType).toBe('complete');
  });
});

describe('a decision', () => {
  const decide =
    (holdsFor: () => string, then: (context: McpRequest) => unknown = () => 'done'): SmallHandler =>
    async (_, context) => {
      const answer = await asks(context).ask('approve', form('May I?'), { once: { holdsFor: holdsFor() } });
      return succeeded([answer.action, await then(context)], false);
    };
  const yes = { approve: accept({ name: 'yes' }) };

  it('is used up by the first call that gets it, at whichever replica', async () => {
    const { call, refuse: refused } = caller(served(decide(() => 'this')));
    const { requestState } = await call();
    const both = await Promise.all([
      refused({ requestState, inputResponses: yes }),
      refused({ requestState, inputResponses: yes }),
    ]);
    expect(both.filter((reply) => 'result' in reply)).toHaveLength(1);
    expect(both.find((reply) => 'error' in reply)).toMatchObject(REPLAY);
  });

  it('cannot be turned around once it was given', async () => {
    const { call, refuse: refused } = caller(served(decide(() => 'this')));
    const { requestState } = await call();
    await call({ requestState, inputResponses: { approve: { action: 'decline' } } });
    expect(await refused({ requestState, inputResponses: yes })).toMatchObject(REPLAY);
  });

  it('counts for nothing when what was decided upon has changed', async () => {
    let version = 1;
    const changed = decide(() => `row ${version}`);
    const { call } = caller(
      served(async (args, context) => {
        try {
          return await changed(args, context);
        } catch (error) {
          if (error instanceof ApprovedCallChanged) return succeeded('changed', false);
          throw error;
        }
      }),
    );
    const { requestState } = await call();
    version = 2;
    expect((await call({ requestState, inputResponses: yes })).content?.[0]?.text).toBe('"changed"');
  });

  it('can be kept while the call goes on asking, for one run at a time and never for what it runs in turn', async () => {
    const seen: unknown[] = [];
    const { call, refuse: refused } = caller(
      served(async (_, context) => {
        const { granted } = asks(context);
        seen.push([
          await granted?.recall('desk', 'this'),
          await granted?.recall('desk', 'that'),
          asks(context).within().granted,
        ]);
        granted?.keep('desk', 'this', 'key:chief');
        await asks(context).ask('name', form('Who?'));
        return succeeded('done');
      }),
    );
    const { requestState } = await call();
    const more = { requestState, inputResponses: { name: accept({ name: 'Ada' }) } };
    expect((await call(more)).resultType).toBe('complete');
    expect(seen).toEqual([
      [undefined, undefined, undefined],
      ['key:chief', undefined, undefined],
    ]);
    expect(await refused(more)).toMatchObject(REPLAY);
  });

  it('on a nested call is never the decision on the outer call, nor on the same nested call again', async () => {
    const ran: string[] = [];
    const nested = async (context: McpRequest, holdsFor: string) => {
      await asks(context).within().ask('approve', form('May I?'), { once: { holdsFor } });
      ran.push(holdsFor);
    };
    const { call } = caller(
      served(async (_, context) => {
        const { granted } = asks(context);
        if (!(await granted?.recall('gate', 'call'))) {
          await asks(context).ask('approve', form('May I?'), { once: { holdsFor: 'call' } });
        }
        granted?.keep('gate', 'call', 'ada');
        await Promise.all([nested(context, 'inner'), nested(context, 'inner')]);
        return succeeded('done');
      }),
    );
    const first = await call();
    expect(Object.keys(first.inputRequests ?? {})).toEqual(['approve']);
    const second = await call({ requestState: first.requestState, inputResponses: yes });
    const keys = Object.keys(second.inputRequests ?? {});
    expect(keys).toHaveLength(2);
    expect(ran).toEqual([]);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, yes.approve]));
    expect((await call({ requestState: second.requestState, inputResponses })).resultType).toBe('complete');
    expect(ran).toEqual(['inner', 'inner']);
  });

  it('can be waited for: the client is asked to repeat the call, with nothing to answer', async () => {
    let decided = false;
    const { call } = caller(
      served((_, context) => (decided ? succeeded('done') : asks(context).postpone?.()) as never),
    );
    const waiting = await call({}, { ...MODERN, clientCapabilities: {} });
    expect(waiting).toMatchObject({ resultType: 'input_required' });
    expect(waiting).not.toHaveProperty('inputRequests');
    decided = true;
    expect((await call({ requestState: waiting.requestState })).resultType).toBe('complete');
  });
});
