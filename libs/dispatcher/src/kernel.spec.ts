import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Unauthorized } from '#core';
import { SharedStateUnavailable } from '#state';
import {
  type AskedRequest,
  kernelUnderTest,
  MODERN,
  NOVEMBER,
  readResult,
  smallTool,
  SmallToolRunner,
} from './contracts/kernel-under-test.js';
import { LEGACY_VERSIONS } from './protocol.js';

const { ask } = kernelUnderTest();
const error = (code: number, message: string, status = 200) => ({ error: { code, message }, status });

describe('the handshake', () => {
  it.each(['2025-06-18', '2025-03-26', '2024-11-05'])(
    'echoes %s with the frozen capability object',
    async (version) => {
      expect(readResult(await ask('initialize', { protocolVersion: version }))).toEqual({
        protocolVersion: version,
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: false, listChanged: false },
          prompts: { listChanged: true },
        },
        serverInfo: { name: 'parley', version: '1.2.3' },
      });
    },
  );

  it.each([[undefined], [null], [{}], [{ protocolVersion: 5 }], [{ protocolVersion: '1999-01-01' }]])(
    'answers 2025-06-18 to %j',
    async (params) => {
      expect(readResult(await ask('initialize', params)).protocolVersion).toBe('2025-06-18');
    },
  );

  it.each([[[]], ['x'], [5], [true]])(
    'refuses params of initialize that are no object: %j',
    async (params) => {
      expect(await ask('initialize', params)).toEqual(error(-32602, 'Invalid params'));
    },
  );

  it('announces to 2025-11-25 only what is served, with instructions', async () => {
    expect(readResult(await ask('initialize', { protocolVersion: '2025-11-25' }))).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: {
        tools: { listChanged: true },
        resources: {},
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
      instructions: 'Begin with get_all_schemas.',
    });
  });

  it('discovers modern versions only, with cache hints and who answers', async () => {
    expect(readResult(await ask('server/discover', {}, MODERN))).toEqual({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: {
        tools: { listChanged: true },
        resources: {},
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
      instructions: 'Begin with get_all_schemas.',
      ttlMs: 300_000,
      cacheScope: 'public',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'parley', version: '1.2.3' } },
    });
  });
});

describe('the method table', () => {
  it.each([
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'tasks/result',
    'nope',
    'constructor',
    '',
  ])('knows no %j in the stateless era', async (method) => {
    expect(await ask(method, {}, MODERN)).toEqual(error(-32601, `Method not found: ${method}`, 404));
  });

  it.each([
    'server/discover',
    'logging/setLevel',
    'roots/list',
    'sampling/createMessage',
    'nope',
    'toString',
  ])('knows no %j in the legacy era, with status 200', async (method) => {
    expect(await ask(method)).toEqual(error(-32601, `Method not found: ${method}`));
  });

  it('has completions from 2025-11-25 on', async () => {
    expect(await ask('completion/complete')).toEqual(error(-32601, 'Method not found: completion/complete'));
    expect(await ask('completion/complete', {}, NOVEMBER)).toEqual(error(-32602, 'Invalid params'));
  });

  it.each(['resources/subscribe', 'resources/unsubscribe'])('says that %s is not served', async (method) => {
    expect(await ask(method, { uri: 'parse://Post/count' })).toEqual(
      error(-32601, 'Resource subscriptions are not supported by this server'),
    );
  });

  it('answers ping with an empty result', async () => {
    expect(await ask('ping')).toEqual({ result: {} });
  });

  it.each([5, null, undefined, {}, []])('treats the method %j as unknown', async (method) => {
    expect(await ask(method, {}, { requestId: 1 })).toEqual(
      error(-32601, `Method not found: ${JSON.stringify(method)}`),
    );
  });
});

describe('notifications', () => {
  it.each(['notifications/initialized', 'notifications/never-heard-of'])('accepts %s', async (method) => {
    expect(await ask(method, {}, { requestId: undefined })).toEqual({ accepted: true });
    expect(await ask(method, {}, { requestId: null })).toEqual({ accepted: true });
    expect(await ask(method, {}, { ...MODERN, requestId: undefined })).toEqual({ accepted: true });
  });

  it('refuses one that carries an id', async () => {
    expect(await ask('notifications/initialized', {}, { requestId: 0 })).toEqual(
      error(-32600, 'Invalid Request: notifications must not carry an id'),
    );
  });
});

describe('params', () => {
  it.each([[[]], ['x'], [5], [true]])('refuses %j', async (params) => {
    expect(await ask('tools/list', params)).toEqual(error(-32602, 'Invalid params'));
  });

  it.each<[string, object]>([
    ['resources/read', { uri: 'parse://\ud800/schema' }],
    ['completion/complete', { argument: { name: 'x', value: '\udc00' } }],
    ['prompts/get', { name: 'x', arguments: { class_name: '\ud800' } }],
  ])('refuses a text with half of a surrogate pair: %s', async (method, params) => {
    expect(await ask(method, params, NOVEMBER)).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('half of a surrogate pair') as string },
    });
  });

  it('takes absent and null params as none', async () => {
    expect(readResult(await ask('tools/list', null))).toEqual(readResult(await ask('tools/list')));
  });

  it('refuses an unknown log level in the stateless era', async () => {
    const params = { _meta: { 'io.modelcontextprotocol/logLevel': 'loud' } };
    expect(await ask('tools/list', params, MODERN)).toEqual(error(-32602, 'Invalid log level'));
  });
});

describe('errors', () => {
  const throwing = (thrown: unknown) =>
    new SmallToolRunner().add(smallTool('broken'), () => {
      throw thrown;
    });

  it.each(['legacy', 'modern'] as const)(
    'says busy, not broken, while the state that replicas share cannot be reached: %s',
    async (era) => {
      const { ask: askBroken } = kernelUnderTest(throwing(new SharedStateUnavailable()));
      const context = era === 'modern' ? MODERN : {};
      expect(await askBroken('tools/call', { name: 'broken', arguments: {} }, context)).toEqual(
        error(-32000, 'server busy', 503),
      );
    },
  );

  it('shows nothing of an unexpected error, and logs what failed with class, message and stack', async () => {
    const { ask: askBroken, warnings } = kernelUnderTest(throwing(new RangeError('row 7\nsecret')));
    expect(await askBroken('tools/call', { name: 'broken' })).toEqual(error(-32603, 'Internal error'));
    expect(warnings).toEqual([
      expect.stringMatching(/^tools\/call broken failed: RangeError: row 7\\nsecret\n +at .+/),
    ]);
  });

  it('passes Unauthorized on as 401', async () => {
    const { ask: askBroken } = kernelUnderTest(throwing(new Unauthorized('expired')));
    expect(await askBroken('tools/call', { name: 'broken' })).toEqual(error(-32001, 'Unauthorized', 401));
  });

  it('never throws, and always answers exactly one of result, error and accepted', async () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('hostile agent');
        },
      },
    );
    const methods = [
      'tools/list',
      'tools/call',
      'resources/read',
      'prompts/get',
      'completion/complete',
      'initialize',
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.constantFrom<unknown>(...methods), fc.anything()),
        fc.anything(),
        fc.constantFrom<AskedRequest>({}, MODERN, NOVEMBER, { agent: hostile as never }),
        async (method, params, context) => {
          const reply = await ask(method, params, context);
          expect(['result', 'error', 'accepted'].filter((key) => key in reply)).toHaveLength(1);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('never answers an internal error to a healthy agent, whatever the params', async () => {
    const methods = [
      'tools/list',
      'tools/call',
      'resources/list',
      'prompts/get',
      'completion/complete',
      'initialize',
    ];
    const member = fc.constantFrom(
      'name',
      'arguments',
      'cursor',
      'category',
      'ref',
      'argument',
      'context',
      '_meta',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...methods),
        fc.oneof(fc.jsonValue(), fc.dictionary(member, fc.jsonValue())),
        fc.constantFrom(...LEGACY_VERSIONS, '2026-07-28'),
        async (method, params, version) => {
          const era = version === '2026-07-28' ? 'modern' : 'legacy';
          const reply = await ask(method, params, { era, version });
          expect('error' in reply ? reply.error.code : 0).not.toBe(-32603);
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe('logging/setLevel', () => {
  it('hands the level to the session, from 2025-11-25 on', async () => {
    const levels: string[] = [];
    const setLogLevel = async (level: string) => void levels.push(level);
    expect(
      readResult(await ask('logging/setLevel', { level: 'warning' }, { ...NOVEMBER, setLogLevel })),
    ).toEqual({});
    expect(levels).toEqual(['warning']);
    expect(await ask('logging/setLevel', { level: 'warning' })).toEqual(
      error(-32601, 'Method not found: logging/setLevel', 200),
    );
    expect(await ask('logging/setLevel', { level: 'warning' }, MODERN)).toMatchObject({
      error: { code: -32601 },
    });
  });

  it.each([[undefined], ['loud'], [3], [null]])('refuses the level %j', async (level) => {
    const setLogLevel = () => Promise.reject(new Error('nothing may be kept'));
    expect(await ask('logging/setLevel', { level }, { ...NOVEMBER, setLogLevel })).toEqual(
      error(-32602, 'Invalid log level'),
    );
  });
});
