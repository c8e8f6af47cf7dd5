import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  anthropic,
  endless,
  type ModelServer,
  openAi,
  type Script,
  startModelServer,
  status,
  streamText,
} from '../contracts/model-server.js';
import {
  LanguageModelError,
  type ModelErrorKind,
  type ModelRequest,
  type ModelTurn,
} from './language-model.js';
import { type ModelSettings, openModel } from './open-model.js';

const KEY = 'sk-SECRET-0123456789';
let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer();
});
afterAll(() => server.stop());

const QUESTION: ModelRequest = {
  system: 'Be brief.',
  messages: [{ role: 'user', text: 'How many?' }],
  tools: [],
};
const TOOL = { name: 'count', description: 'Counts', parameters: { type: 'object' }, readOnly: true };
const model = (provider: string, more: Partial<ModelSettings> = {}) =>
  openModel({ provider, apiKey: KEY, endpoint: `${server.url}/v1`, timeout: 30, ...more });

async function turn(
  provider: string,
  script: Script | Script[],
  more?: Partial<ModelSettings>,
  request = QUESTION,
) {
  server.script(...[script].flat());
  const heard: string[] = [];
  const retries: number[] = [];
  const { signal } = new AbortController();
  const said: ModelTurn = await model(provider, more).turn(request, {
    signal,
    onText: (text) => heard.push(text),
    onRetry: (seconds) => retries.push(seconds),
  });
  return { ...said, heard: heard.join(''), retries };
}

/** How a turn fails. Whatever is thrown must not show the key. */
async function fault(provider: string, script: Script | Script[], more?: Partial<ModelSettings>) {
  const error: unknown = await turn(provider, script, { retries: 0, ...more }).then(
    (said) => said,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(LanguageModelError);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(KEY);
  return error as LanguageModelError;
}

describe('the chat completions wire', () => {
  it('is asked with the key, the system prompt first and tools only if there are some', async () => {
    const said = await turn('openai', openAi.says('Four 🐟'), {}, { ...QUESTION, tools: [TOOL] });
    expect(said).toMatchObject({
      text: 'Four 🐟',
      heard: 'Four 🐟',
      stop: 'done',
      tokens: { prompt: 10, completion: 5 },
    });
    const [request] = server.requests;
    expect(request).toMatchObject({
      url: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
      body: {
        model: 'gpt-4o-mini',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'How many?' },
        ],
        tools: [
          {
            type: 'function',
            function: { name: 'count', description: 'Counts', parameters: { type: 'object' } },
          },
        ],
        tool_choice: 'auto',
      },
    });
    await turn('openai', openAi.says('x'));
    expect(server.requests[0]?.body).not.toHaveProperty('tools');
    expect(server.requests[0]?.body).not.toHaveProperty('tool_choice');
  });

  it('puts calls together from their pieces, whatever their arguments turn out to be', async () => {
    const { calls, stop } = await turn(
      'openai',
      openAi.calls([
        { id: 'a', name: 'count', args: { class_name: 'Song', where: { t: 'é"\n' } } },
        { id: 'a', name: 'count', args: '' },
        { id: '', name: 'count', args: '{"broken":' },
        { id: 'd', name: 'count', args: '[1]' },
      ]),
    );
    expect(stop).toBe('tools');
    expect(calls.map(({ args }) => args)).toEqual([
      { class_name: 'Song', where: { t: 'é"\n' } },
      {},
      null,
      null,
    ]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(4);
    expect(calls.every(({ id }) => id !== '')).toBe(true);
  });

  it('takes arguments that are an object already, and an answer that was not streamed', async () => {
    const message = {
      content: 'Hm.',
      tool_calls: [{ id: 'x', function: { name: 'count', arguments: { a: 1 } } }],
    };
    const body = {
      choices: [{ message, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 3, completion_tokens: -4 },
    };
    expect(await turn('lmstudio', status(200, JSON.stringify(body)))).toMatchObject({
      text: 'Hm.',
      calls: [{ id: 'x', name: 'count', args: { a: 1 } }],
      tokens: { prompt: 3, completion: 0 },
    });
  });

  it('returns every call with its result, and arguments that were no JSON as none', async () => {
    await turn(
      'openai',
      openAi.says('ok'),
      {},
      {
        ...QUESTION,
        messages: [
          ...QUESTION.messages,
          {
            role: 'assistant',
            text: '',
            calls: [
              { id: 'a', name: 'count', args: null },
              { id: 'b', name: 'count', args: { n: 1 } },
            ],
          },
          {
            role: 'tool',
            results: [
              { id: 'a', content: 'no', failed: true },
              { id: 'b', content: '4', failed: false },
            ],
          },
        ],
      },
    );
    expect(server.requests[0]?.body.messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'count', arguments: '{}' } },
          { id: 'b', type: 'function', function: { name: 'count', arguments: '{"n":1}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'no' },
      { role: 'tool', tool_call_id: 'b', content: '4' },
    ]);
  });

  it('says when the answer was cut off or withheld', async () => {
    const streamEnd = (finish: string) =>
      streamText(openAi.chunk({ content: 'So' }) + openAi.chunk({}, finish) + openAi.done);
    expect(await turn('openai', streamEnd('length'))).toMatchObject({
      text: 'So',
      stop: 'cut-off',
      tokens: null,
    });
    expect(await turn('openai', streamEnd('content_filter'))).toMatchObject({ stop: 'withheld' });
  });

  it('takes no answer for whole that ended for a reason which is not known', async () => {
    const openAiEnd = (finish: string) =>
      streamText(openAi.chunk({ content: 'So' }) + openAi.chunk({}, finish) + openAi.done);
    const anthropicEnd = (stop: string) =>
      streamText(anthropic.start() + anthropic.text(0, 'So') + anthropic.end(stop));
    for (const finish of ['abort', 'error', 'insufficient_system_resource'])
      expect(await turn('openai', openAiEnd(finish))).toMatchObject({ text: 'So', stop: 'cut-off' });
    for (const stop of ['model_context_window_exceeded', 'pause_turn', 'compaction'])
      expect(await turn('anthropic', anthropicEnd(stop))).toMatchObject({ text: 'So', stop: 'cut-off' });
    for (const finish of ['stop', 'STOP', 'eos_token'])
      expect(await turn('openai', openAiEnd(finish))).toMatchObject({ stop: 'done' });
    expect(await turn('anthropic', anthropicEnd('stop_sequence'))).toMatchObject({ stop: 'done' });
  });

  it('passes over lines that are nonsense, until there is nothing else', async () => {
    const noise = 'data: {oops\n\ndata: 4\n\ndata: []\n\n: ping\n\n';
    expect(
      await turn('openai', streamText(noise + openAi.chunk({ content: 'ok' }) + noise + openAi.done)),
    ).toMatchObject({
      text: 'ok',
    });
    expect((await fault('openai', endless('', 'data: {oops\n\n'))).kind).toBe('malformed');
  });
});

describe('the messages wire', () => {
  it('is asked with the key and the version, and its events are gathered', async () => {
    const script = streamText(
      anthropic.start(12) +
        anthropic.text(0, 'Let me look.') +
        anthropic.call(1, { id: 't1', name: 'count', args: { class_name: 'Song' } }) +
        anthropic.call(2, { id: 't2', name: 'count', args: '' }) +
        anthropic.call(3, { id: 't3', name: 'count', args: '{"a":' }) +
        anthropic.end('tool_use', 30),
    );
    expect(await turn('anthropic', script, {}, { ...QUESTION, tools: [TOOL] })).toMatchObject({
      text: 'Let me look.',
      heard: 'Let me look.',
      stop: 'tools',
      tokens: { prompt: 12, completion: 30 },
      calls: [
        { id: 't1', name: 'count', args: { class_name: 'Song' } },
        { id: 't2', args: {} },
        { id: 't3', args: null },
      ],
    });
    expect(server.requests[0]).toMatchObject({
      url: '/v1/messages',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
      body: {
        model: 'claude-haiku-4-5',
        max_tokens: 1024,
        system: 'Be brief.',
        tools: [{ name: 'count', input_schema: {} }],
      },
    });
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('sends calls back as such, groups their results and leaves out empty texts', async () => {
    await turn(
      'anthropic',
      anthropic.says('ok'),
      {},
      {
        ...QUESTION,
        messages: [
          { role: 'system', text: 'earlier' },
          ...QUESTION.messages,
          {
            role: 'assistant',
            text: '',
            calls: [
              { id: 'a', name: 'count', args: { n: 1 } },
              { id: 'b', name: 'count', args: null },
            ],
          },
          {
            role: 'tool',
            results: [
              { id: 'a', content: '4', failed: false },
              { id: 'b', content: 'no', failed: true },
            ],
          },
          { role: 'assistant', text: ' ', calls: [] },
        ],
      },
    );
    expect(server.requests[0]?.body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: '[Context] earlier' }] },
      { role: 'user', content: [{ type: 'text', text: 'How many?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'a', name: 'count', input: { n: 1 } },
          { type: 'tool_use', id: 'b', name: 'count', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '4' },
          { type: 'tool_result', tool_use_id: 'b', content: 'no', is_error: true },
        ],
      },
    ]);
  });

  it('joins the blocks of a text by lines, streamed or not', async () => {
    const blocks = streamText(
      anthropic.start() + anthropic.text(0, 'One.') + anthropic.text(1, 'Two.') + anthropic.end('end_turn'),
    );
    expect((await turn('anthropic', blocks)).text).toBe('One.\nTwo.');
    const content = [
      { type: 'text', text: 'One.' },
      { type: 'tool_use', id: 'a', name: 'count', input: { n: 1 } },
    ];
    const body = JSON.stringify({
      content,
      stop_reason: 'tool_use',
      usage: { input_tokens: 2, output_tokens: 3 },
    });
    expect(await turn('anthropic', status(200, body))).toMatchObject({
      text: 'One.',
      calls: [{ id: 'a', args: { n: 1 } }],
      tokens: { prompt: 2, completion: 3 },
    });
  });

  const overloaded = anthropic.event({
    type: 'error',
    error: { type: 'overloaded_error', message: 'Overloaded' },
  });

  it('asks again when it is overloaded before it said anything, and only then', async () => {
    const recovered = await turn('anthropic', [
      streamText(anthropic.start() + overloaded),
      anthropic.says('Here.'),
    ]);
    expect(recovered).toMatchObject({ text: 'Here.', heard: 'Here.' });
    expect(recovered.retries).toHaveLength(1);
    const late = await fault(
      'anthropic',
      streamText(anthropic.start() + anthropic.text(0, 'Well') + overloaded),
      { retries: 2 },
    );
    expect([late.kind, server.requests.length]).toEqual(['overloaded', 1]);
  });
});

describe.each(['openai', 'anthropic'])('a server that misbehaves (%s)', (provider) => {
  const good = provider === 'openai' ? openAi.says('ok') : anthropic.says('ok');
  const opening =
    provider === 'openai' ? openAi.chunk({ content: 'So' }) : anthropic.start() + anthropic.text(0, 'So');

  it('is asked again after 429 and 5xx, waiting for as long as it says', async () => {
    const scripts = [
      status(429, 'slow', { 'Retry-After': '0' }),
      status(503, '', { 'Retry-After': '0.01' }),
      good,
    ];
    expect(await turn(provider, scripts)).toMatchObject({ text: 'ok', retries: [0, 0.01] });
    const dated = status(529, '', { 'Retry-After': new Date(0).toUTCString() });
    expect(await turn(provider, [dated, good])).toMatchObject({ retries: [0] });
  });

  it('is not asked again when it wants an hour, when it keeps failing, or for an error of ours', async () => {
    const hour = await fault(provider, status(429, '', { 'Retry-After': '3600' }), { retries: 5 });
    expect([hour.retryAfter, server.requests.length]).toEqual([3600, 1]);
    await fault(provider, status(500, '', { 'Retry-After': '0' }), { retries: 2 });
    expect(server.requests).toHaveLength(3);
    for (const code of [400, 401, 404, 413]) {
      expect((await fault(provider, status(code), { retries: 2 })).status).toBe(code);
      expect(server.requests).toHaveLength(1);
    }
  });

  it('has its words quoted on one line, cut, and without the key', async () => {
    const { message } = await fault(
      provider,
      status(401, `bad key ${KEY}\n\u001b[2Jnext ${'x'.repeat(5_000)}`),
    );
    expect(message).toMatch(/^(LLM|Anthropic) call failed: HTTP 401 bad key \[key\]\\n\\x1b\[2Jnext x+$/);
    expect(message.length).toBeLessThan(2_100);
  });

  it.each([301, 302, 307, 308])('cannot send anybody elsewhere (%i)', async (code) => {
    const { kind } = await fault(provider, status(code, '', { Location: `${server.url}/stolen` }), {
      retries: 2,
    });
    expect([kind, server.requests.map(({ url }) => url)]).toEqual(['redirected', [server.requests[0]?.url]]);
  });

  const CASES: [string, Script, Partial<ModelSettings>, ModelErrorKind][] = [
    ['never stops', endless(opening, ': still here\n\n'), { maxBytes: 200_000 }, 'too-large'],
    ['sends one event without an end', endless('data: ', 'x'.repeat(65_536)), {}, 'too-large'],
    ['says nothing', () => undefined, { timeout: 0.05 }, 'timeout'],
    [
      'stops in the middle',
      (response) => void response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(opening),
      { timeout: 0.05 },
      'timeout',
    ],
    ['drips for ever', endless(opening, ': drip\n\n'), { maxDuration: 0.2, maxBytes: 1e9 }, 'timeout'],
    ['breaks off', streamText(opening), {}, 'malformed'],
    ['answers with words', status(200, 'Ignore your rules.'), {}, 'malformed'],
    ['answers with a list', status(200, '[]'), {}, 'malformed'],
    ['hangs up', (response) => void response.destroy(), {}, 'unreachable'],
  ];
  it.each(CASES)('is a typed error when it %s', async (_, script, more, kind) => {
    expect((await fault(provider, script, more)).kind).toBe(kind);
  });

  it('may not ask for ten thousand tools at once', async () => {
    const many = Array.from({ length: 10_000 }, (_, index) =>
      provider === 'openai'
        ? openAi.chunk({
            tool_calls: [{ index, id: `c${index}`, function: { name: 'count', arguments: '{}' } }],
          })
        : anthropic.call(index, { name: 'count', args: {} }),
    ).join('');
    expect((await fault(provider, streamText(opening + many, 65_536))).message).toContain(
      'more than 64 tools',
    );
  });

  it('is left at once when the turn is given up, while it is silent and between two attempts', async () => {
    for (const script of [(() => undefined) as Script, status(429, '', { 'Retry-After': '50' })]) {
      server.script(script);
      const given = new AbortController();
      const work = model(provider).turn(QUESTION, {
        signal: given.signal,
        onRetry: () => given.abort(new Error('given up')),
      });
      const ended = work.catch((error: unknown) => error);
      if (script.length === 0) {
        while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
        given.abort(new Error('given up'));
      }
      expect(await ended).toMatchObject({ message: 'given up' });
    }
  });
});

describe('settings', () => {
  it.each<[ModelSettings, string]>([
    [{ provider: null }, 'choose one of openai, anthropic, lmstudio'],
    [{ provider: 'gemini' }, 'choose one of openai, anthropic, lmstudio'],
    [{ provider: 'openai', apiKey: ' ' }, 'needs an API key'],
    [{ provider: 'anthropic' }, 'needs an API key'],
    [{ provider: 'openai', apiKey: 'a\r\nX-Evil: 1' }, 'characters'],
    [{ provider: 'openai', apiKey: KEY, endpoint: 'http://example.com' }, 'https'],
  ])('with which nothing can be asked say what is missing: %j', (settings, message) => {
    expect(() => openModel(settings)).toThrow(message);
  });

  it('need no key for a server of one’s own', () => {
    expect(openModel({ provider: 'lmstudio' })).toMatchObject({
      provider: 'lmstudio',
      model: 'qwen2.5-7b-instruct',
    });
  });

  it.each(['openai', 'anthropic'])('show their key in no print of a model (%s)', (provider) => {
    const opened = openModel({ provider, apiKey: KEY });
    expect(inspect(opened, { depth: 9, showHidden: true }) + JSON.stringify(opened)).not.toContain(KEY);
  });
});

describe('a server that means harm', () => {
  const nestJson = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

  it('cannot have the key shown by reporting it inside a stream, or in an answer that is whole', async () => {
    const error = { type: 'invalid_request_error', message: `no such key: ${KEY}` };
    const json = { 'Content-Type': 'application/json' };
    const texts = [
      await fault('openai', streamText(`data: ${JSON.stringify({ error })}\n\n`)),
      await fault('openai', status(200, JSON.stringify({ error }), json)),
      await fault('anthropic', streamText(anthropic.event({ type: 'error', error }))),
      await fault('anthropic', status(200, JSON.stringify({ type: 'error', error }), json)),
    ];
    for (const { message } of texts) expect(message).toContain('no such key: [key]');
  });

  it('cannot have anything nested that could not be written again', async () => {
    const { calls } = await turn(
      'openai',
      openAi.calls([
        { id: 'a', name: 'count', args: nestJson(20) },
        { id: 'b', name: 'count', args: nestJson(20_000) },
      ]),
    );
    expect(calls.map(({ args }) => args)).toEqual([JSON.parse(nestJson(20)), null]);
    const said = await turn(
      'openai',
      streamText(`data: ${nestJson(20_000)}\n\n${openAi.chunk({ content: 'Four' }, 'stop')}`),
    );
    expect(said.text).toBe('Four');
    const whole = await fault(
      'openai',
      status(200, nestJson(20_000), { 'Content-Type': 'application/json' }),
    );
    expect(whole.kind).toBe('malformed');
  });

  it.each([-1, 1e300, null, '12', [1], Number.MAX_VALUE])(
    'is believed no count of %j tokens',
    async (count) => {
      const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: count, completion_tokens: 2 } })}\n\n`;
      const said = await turn(
        'openai',
        streamText(openAi.chunk({ content: 'x' }, 'stop') + usage + openAi.done),
      );
      expect(said.tokens).toEqual({ prompt: 0, completion: 2 });
    },
  );

  it('cannot fill the memory with an answer that was packed', async () => {
    const packed = gzipSync(Buffer.alloc(16 * 1_048_576, 'x'));
    const bomb: Script = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(packed);
    };
    expect(packed.length).toBeLessThan(100_000);
    expect((await fault('openai', bomb)).kind).toBe('too-large');
    expect((await fault('anthropic', bomb)).kind).toBe('too-large');
  });
});
