import { PassThrough } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { call, cancel, until } from '../testing/calls.js';
import { edgeUnderTest } from '../testing/edge-under-test.js';
import { initialize, modern, MODERN_META, ping } from '../testing/requests.js';
import { StdioEdge, type StdioOptions } from './stdio-edge.js';

const dependencies = await edgeUnderTest();
afterAll(() => dependencies.stop());
const { tools } = dependencies;

/** A client at the other end of a pipe. */
function createPipe(
  options: Partial<StdioOptions> = {},
  credentials: Record<string, string> = { 'x-mcp-api-key': 'ada' },
) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = '';
  output.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const { kernel, authenticator, wire } = dependencies;
  const log = { warn: (line: string) => void dependencies.warnings.push(line) };
  const edge = new StdioEdge(kernel, authenticator, wire, null, {
    credentials,
    input,
    output,
    log,
    ...options,
  });
  const ended = edge.run();
  const readMessages = () =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const answerTo = async (id: unknown) => {
    await until(() => readMessages().some((message) => message.id === id && !('method' in message)));
    return readMessages().find((message) => message.id === id) as Record<string, unknown>;
  };
  return {
    write: (bytes: string | Buffer) => input.write(bytes),
    say: (...messages: unknown[]) =>
      messages.forEach((message) => input.write(`${JSON.stringify(message)}\n`)),
    said: readMessages,
    answerTo,
    hangUp: () => input.end(),
    stop: () => edge.stop(),
    ended,
    text: () => text,
  };
}

const discover = (id: unknown) => ({
  jsonrpc: '2.0',
  id,
  method: 'server/discover',
  params: { _meta: MODERN_META },
});
const modernCall = (name: string, id: unknown, meta: object = {}) => ({
  ...(modern('tools/call', { name, arguments: {}, _meta: { ...MODERN_META, ...meta } }).body as object),
  id,
});

describe('a client on a pipe', () => {
  it('is answered one message to a line, in either era, whichever comes first', async () => {
    const pipe = createPipe();
    pipe.say(discover('d'), initialize(), call('echo', 'c'), modernCall('echo', 'm'));
    expect(await pipe.answerTo('d')).toMatchObject({ result: { supportedVersions: ['2026-07-28'] } });
    expect(await pipe.answerTo(0)).toMatchObject({ result: { protocolVersion: '2025-06-18' } });
    expect(await pipe.answerTo('c')).toMatchObject({ result: { isError: false } });
    expect(await pipe.answerTo('m')).toMatchObject({ result: { resultType: 'complete' } });
    pipe.hangUp();
    await pipe.ended;
    expect(pipe.said()).toHaveLength(4);
  });

  it.each([
    ['a method nobody knows', '{"jsonrpc":"2.0","id":1,"method":"nope"}', { id: 1, error: { code: -32601 } }],
    [
      'a probe without an envelope',
      '{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
      { error: { code: -32601 } },
    ],
    ['no JSON', '{"jsonrpc"', { id: null, error: { code: -32700 } }],
    ['no message', '{"id":1}', { id: null, error: { code: -32600 } }],
    ['an object as id', '{"jsonrpc":"2.0","id":{},"method":"ping"}', { id: null, error: { code: -32600 } }],
    ['an array', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', { id: null, error: { code: -32600 } }],
    [
      'an envelope without capabilities',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
      { id: 1, error: { code: -32602 } },
    ],
    ['a message that is too long', `{"x":"${'x'.repeat(600)}"}`, { id: null, error: { code: -32700 } }],
  ])('gets the error at once before any handshake, and goes on: %s', async (_, line, refusal) => {
    const pipe = createPipe({ maxMessageSize: 500 });
    pipe.write(`${line}\n`);
    await until(() => pipe.said().length === 1);
    expect(pipe.said()[0]).toMatchObject(refusal);
    pipe.say(ping('after'));
    expect(await pipe.answerTo('after')).toMatchObject({ result: {} });
    pipe.hangUp();
  });

  it('may cut its bytes anywhere, and leave lines blank', async () => {
    const pipe = createPipe();
    for (const byte of Buffer.from('\n\r\n{"jsonrpc":"2.0","id":"é","method":"ping"}\r\n'))
      pipe.write(Buffer.from([byte]));
    expect(await pipe.answerTo('é')).toEqual({ jsonrpc: '2.0', id: 'é', result: {} });
    pipe.hangUp();
  });

  it('is answered when its input ends without a last line break', async () => {
    const pipe = createPipe();
    pipe.say(ping(1));
    pipe.write(JSON.stringify(ping(2)));
    pipe.hangUp();
    await pipe.ended;
    expect(pipe.said()).toMatchObject([
      { id: 1, result: {} },
      { id: 2, result: {} },
    ]);
  });

  it('is refused with the wrong credentials, request by request', async () => {
    const pipe = createPipe({}, { 'x-mcp-api-key': 'wrong' });
    pipe.say(ping(1), { jsonrpc: '2.0', method: 'notifications/initialized' }, ping(2));
    expect(await pipe.answerTo(1)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32001, message: 'Unauthorized' },
    });
    await pipe.answerTo(2);
    expect(pipe.said()).toHaveLength(2);
    pipe.hangUp();
  });

  it('hears progress and log lines before the answer, as its revision has them', async () => {
    const pipe = createPipe();
    tools.work = ({ progress, log }) => {
      progress({ progress: 1 });
      log?.({ level: 'info', data: 'hello' });
    };
    pipe.say(initialize('2025-11-25'));
    await pipe.answerTo(0);
    pipe.say(call('work', 1, { progressToken: 't' }));
    await pipe.answerTo(1);
    expect(pipe.said().map(({ method, id }) => method ?? id)).toEqual([
      0,
      'notifications/progress',
      'notifications/message',
      1,
    ]);
    pipe.hangUp();
  });

  it('may send several messages in one array once it has negotiated 2025-03-26', async () => {
    const pipe = createPipe();
    pipe.say(initialize('2025-03-26'));
    await pipe.answerTo(0);
    pipe.say([ping('a'), ping('b')], [cancel(1)]);
    pipe.say(ping('c'));
    await pipe.answerTo('c');
    expect(pipe.said().slice(1)).toContainEqual([
      { jsonrpc: '2.0', id: 'a', result: {} },
      { jsonrpc: '2.0', id: 'b', result: {} },
    ]);
    expect(pipe.said()).toHaveLength(3);
    pipe.hangUp();
  });
});

describe.each([
  ['2025-06-18', (id: unknown) => call('wait', id)],
  ['2026-07-28', (id: unknown) => modernCall('wait', id)],
])('a call of %s', (_, waiting) => {
  it('is cancelled by a notification and then has no answer', async () => {
    tools.contexts.length = 0;
    const pipe = createPipe();
    pipe.say(waiting('w'));
    await until(() => tools.contexts.length === 1);
    pipe.say(cancel('other'), ping(1));
    await pipe.answerTo(1);
    expect(tools.contexts[0]?.signal.aborted).toBe(false);
    pipe.say(cancel('w'));
    await until(() => tools.contexts[0]?.signal.reason === 'notifications_cancelled');
    pipe.hangUp();
    await pipe.ended;
    expect(pipe.said().map(({ id }) => id)).toEqual([1]);
  });

  it('is answered although the input has ended meanwhile', async () => {
    tools.contexts.length = 0;
    const pipe = createPipe();
    pipe.say(waiting('w'));
    await until(() => tools.contexts.length === 1);
    pipe.hangUp();
    tools.release();
    await pipe.ended;
    expect(pipe.said()).toMatchObject([{ id: 'w', result: { isError: false } }]);
  });

  it('is ended by a stop, and says so', async () => {
    tools.contexts.length = 0;
    const pipe = createPipe();
    pipe.say(waiting('w'));
    await until(() => tools.contexts.length === 1);
    pipe.stop();
    await pipe.ended;
    expect(pipe.said()).toMatchObject([{ id: 'w', result: { cancelled: true } }]);
  });
});

describe('streams on a pipe', () => {
  const listen = (id: unknown, list: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'subscriptions/listen',
    params: { notifications: { [list]: true }, _meta: MODERN_META },
  });
  const tag = (id: unknown) => ({ params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id } } });

  it('share it, each with its own tag; one is cancelled, the other ends with its result', async () => {
    const pipe = createPipe();
    pipe.say(listen('t', 'toolsListChanged'), listen('p', 'promptsListChanged'));
    await until(() => pipe.said().length === 2);
    dependencies.listChanges.next('tools');
    dependencies.listChanges.next('prompts');
    await until(() => pipe.said().length === 4);
    expect(pipe.said().slice(2)).toMatchObject([
      { method: 'notifications/tools/list_changed', ...tag('t') },
      { method: 'notifications/prompts/list_changed', ...tag('p') },
    ]);
    pipe.say(cancel('t'), ping(1));
    await pipe.answerTo(1);
    dependencies.listChanges.next('tools');
    pipe.hangUp();
    await pipe.ended;
    expect(pipe.said().slice(5)).toMatchObject([{ id: 'p', result: { resultType: 'complete' } }]);
  });

  it('carry a question to the client, and its reply', async () => {
    const pipe = createPipe();
    pipe.say(initialize());
    await pipe.answerTo(0);
    let reply: unknown;
    tools.work = async ({ transport: { link } }) => {
      reply = await link?.request('elicitation/create', { message: 'Sure?' }, 60_000);
    };
    pipe.say(call('work', 1));
    await until(() => pipe.said().some(({ method }) => method === 'elicitation/create'));
    const question = pipe.said().find(({ method }) => method === 'elicitation/create');
    pipe.say({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept' } });
    await pipe.answerTo(1);
    expect(reply).toEqual({ result: { action: 'accept' } });
    pipe.hangUp();
  });

  it('notify a client of the handshake about changed lists', async () => {
    const pipe = createPipe();
    pipe.say(initialize());
    await pipe.answerTo(0);
    dependencies.listChanges.next('tools');
    await until(() => pipe.said().length === 2);
    expect(pipe.said()[1]).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    pipe.hangUp();
    await pipe.ended;
    dependencies.listChanges.next('tools');
    expect(pipe.said()).toHaveLength(2);
  });
});

describe('a batch on a pipe', () => {
  const MIB = 1024 * 1024;
  type Answered = { id: number; result?: unknown; error?: { code: number; message: string } }[];
  const startBatching = async (options?: Partial<StdioOptions>) => {
    const pipe = createPipe(options);
    pipe.say(initialize('2025-03-26'));
    await pipe.answerTo(0);
    const answersTo = async (batch: unknown) => {
      pipe.say(batch);
      await until(() => pipe.text().endsWith(']\n'));
      return pipe.said().at(-1) as unknown as Answered;
    };
    return { pipe, answersTo };
  };

  it('has its answers bounded together: what does not fit says so, and what had not begun is not begun', async () => {
    const { pipe, answersTo } = await startBatching();
    tools.contexts.length = 0;
    tools.work = () => ({ text: 'x'.repeat(3 * MIB) });
    const answers = await answersTo(Array.from({ length: 50 }, (_, at) => call('work', at)));
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, at) => at));
    expect(Buffer.byteLength(pipe.text())).toBeLessThan(8.1 * MIB);
    expect(answers.filter(({ result }) => result)).toHaveLength(2);
    const refusals = answers.flatMap(({ error }) => (error ? [error] : []));
    expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set([-32000]));
    const made = refusals.filter(({ message }) => message.startsWith('Done, but its answer'));
    expect(refusals.filter(({ message }) => message.startsWith('Not run'))).toHaveLength(48 - made.length);
    expect(tools.contexts).toHaveLength(2 + made.length);
    expect(made.length).toBeLessThan(4);
    pipe.say(ping('after'));
    expect(await pipe.answerTo('after')).toMatchObject({ result: {} });
    pipe.hangUp();
  });

  it('has one answer at least, however large it is alone', async () => {
    const { pipe, answersTo } = await startBatching();
    let calls = 0;
    tools.work = () => ({ text: 'x'.repeat((calls += 1) === 1 ? 9 * MIB : 1) });
    const answers = await answersTo([call('work', 1), call('work', 2)]);
    expect(answers.map(({ result }) => result !== undefined)).toEqual([true, false]);
    pipe.hangUp();
  });

  it('is refused as a whole with more messages than there may be', async () => {
    const { pipe, answersTo } = await startBatching({ maxBatchSize: 3 });
    expect(await answersTo([ping(1), ping(2), ping(3)])).toHaveLength(3);
    pipe.say([ping(1), ping(2), ping(3), ping(4)]);
    await until(() => pipe.said().length === 3);
    expect(pipe.said()[2]).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: 'Invalid Request' },
    });
    pipe.hangUp();
  });
});
