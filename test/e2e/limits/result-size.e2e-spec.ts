import { beforeAll, describe, expect, it } from 'vitest';
import { callTool, rpc, type Service, startService } from '../../support/service.js';

/** Of the small agent. */
const SMALL = 8_192;
const BODY = 70_000;
const COUNT = 60;
const key = (agent: string) => ({ 'X-MCP-API-Key': `${agent}-key` });
/** Four bytes each. */
const toTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 4);

const rows = Array.from({ length: COUNT }, (_, index) => ({
  objectId: `report${String(index).padStart(4, '0')}`,
  title: `Report ${index}`,
  body: `${index} ${'x'.repeat(BODY)}`,
  summary: `Of ${index}: ${'y'.repeat(400)}`,
}));
const text = { type: 'String' };
const KINDS = Array.from({ length: 50 }, (_, index) => `Kind${String(index).padStart(2, '0')}`);
const COLUMNS = Array.from({ length: 90 }, (_, index) => `column${String(index).padStart(2, '0')}`);
const wide = Object.fromEntries(
  COLUMNS.map((name) => [name, { description: `${name} is ${'d'.repeat(90)}` }]),
);
const LINKS = Object.fromEntries(
  Array.from({ length: 5 }, (_, index) => [`link${index}`, { type: 'Pointer', targetClass: 'Report' }]),
);
const seed = {
  schemas: [
    { className: 'Report', fields: { title: text, body: text, summary: text } },
    ...KINDS.map((className) => ({ className, fields: { title: text, ...LINKS } })),
    { className: 'Wide', fields: Object.fromEntries(COLUMNS.map((name) => [name, text])) },
  ],
  objects: { Report: rows },
};

let service: Service;
beforeAll(async () => {
  const agent = { permissions: 'readonly', rateLimit: 10_000 };
  service = await startService({
    seed,
    config: {
      agents: {
        wide: agent,
        shipped: { ...agent, maxResultBytes: 262_144 },
        small: { ...agent, maxResultBytes: SMALL },
      },
      auth: ['wide', 'shipped', 'small'].map((name) => ({ apiKey: `${name}-key`, agent: name })),
      policy: {
        classes: {
          Report: { description: 'Reports' },
          ...Object.fromEntries(KINDS.map((name) => [name, { description: `${name}: ${'k'.repeat(150)}` }])),
          Wide: { properties: wide },
        },
      },
    },
  });
});

interface Called {
  readonly tool: string;
  readonly arguments: Record<string, unknown>;
}
interface Answer {
  readonly _truncated?: {
    readonly hint: string;
    readonly original_count: number;
    readonly kept_count: number;
  };
  readonly next_call?: Called;
}

async function ask(agent: string, name: string, args: object) {
  const { text, isError } = await callTool(service, name, args, key(agent));
  return { text, isError, bytes: Buffer.byteLength(text) };
}

describe('the result of a tool, above the size of its agent', () => {
  it.each([
    ['query_class', { limit: 60 }],
    ['query_class', { limit: 60, keys: ['summary'] }],
    ['query_class', { limit: 60, keys: ['summary'], format: 'csv' }],
    ['query_class', { limit: 60, keys: ['summary'], format: 'markdown' }],
    ['query_class', { limit: 60, keys: ['summary'], format: 'table' }],
    ['export_data', { columns: ['summary'] }],
    ['export_data', { columns: ['summary'], format: 'markdown' }],
    ['export_data', { columns: ['summary'], format: 'table' }],
    ['get_objects', { ids: rows.slice(0, 40).map(({ objectId }) => objectId) }],
    ['get_object', { object_id: 'report0001' }],
    ['get_sample_objects', { limit: 20 }],
    ['aggregate', { pipeline: [{ $sort: { _id: 1 } }] }],
    ['aggregate', { pipeline: [{ $project: { summary: 1 } }] }],
    ['group_by', { field: 'summary', limit: 60 }],
    ['distinct', { field: 'summary' }],
  ])('is cut, with how to go on: %s %j', async (name, args) => {
    const { text, isError, bytes } = await ask('small', name, { class_name: 'Report', ...args });
    expect([isError, bytes <= SMALL]).toEqual([false, true]);
    const { _truncated } = JSON.parse(text) as Answer;
    expect(_truncated).toMatchObject({ reason: 'response_exceeded_max_bytes' });
    expect(_truncated?.hint).toMatch(/^To stay within 8192 bytes, .+\. [A-Z].+/);
  });

  it.each([
    ['query_class', { keys: ['summary'], limit: 60 }],
    ['query_class', { keys: ['summary'], limit: 60, format: 'csv' }],
    ['export_data', { columns: ['summary'] }],
    ['export_data', { columns: ['summary'], format: 'table', limit: 7 }],
  ])('holds every row once when its next calls are followed: %s %j', async (name, args) => {
    const seen: string[] = [];
    let call: Called | undefined = {
      tool: name,
      arguments: { class_name: 'Report', order: 'title', ...args },
    };
    let calls = 0;
    for (; call && calls < 40; calls += 1) {
      const { text } = await ask('small', call.tool, call.arguments);
      seen.push(...[...text.matchAll(/Of (\d+): y/g)].map(([, index]) => index as string));
      call = (JSON.parse(text) as Answer).next_call;
    }
    expect(calls).toBeGreaterThan(1);
    expect(seen).toHaveLength(COUNT);
    expect(new Set(seen).size).toBe(COUNT);
  });
});

describe('a list of classes or fields, above the size of its agent', () => {
  it.each<[string, object, string[]]>([
    ['get_all_schemas', {}, ['built_in', 'custom']],
    ['get_all_schemas', { prefix: 'Kind' }, ['built_in', 'custom']],
    ['get_schema', { class_name: 'Wide' }, ['fields']],
  ])('is cut, and whole when its next calls are followed: %s %j', async (tool, args, members) => {
    const names = (text: string) => {
      const answer = JSON.parse(text) as Record<string, { name: string }[]>;
      return members.flatMap((member) => (answer[member] ?? []).map(({ name }) => name));
    };
    const whole = names((await ask('wide', tool, args)).text);
    const seen: string[] = [];
    let call: Called | undefined = { tool, arguments: { ...args } };
    let calls = 0;
    for (; call && calls < 40; calls += 1) {
      const { text, bytes, isError } = await ask('small', call.tool, call.arguments);
      expect([isError, bytes <= SMALL]).toEqual([false, true]);
      seen.push(...names(text));
      const answer = JSON.parse(text) as Answer;
      expect(answer._truncated === undefined).toBe(answer.next_call === undefined);
      call = answer.next_call;
    }
    expect(calls).toBeGreaterThan(1);
    expect(seen).toEqual(whole);
  });

  it.each(['list_tools', 'get_all_schemas', 'get_schema'])(
    'is refused to go on in front of its beginning: %s',
    async (tool) => {
      const named = tool === 'get_schema' && { class_name: 'Wide' };
      const { isError, text: said } = await ask('small', tool, { ...named, skip: -1 });
      expect([isError, said]).toEqual([true, expect.stringMatching(/skip/)]);
    },
  );
});

describe('a text with half of a surrogate pair', () => {
  it.each<[string, object]>([
    ['query_class', { where: { title: 'a\ud800' } }],
    ['query_class', { where: { $or: [{ title: { $in: ['\udc00b'] } }] } }],
    ['query_class', { where: { 'ti\ud83dtle': 'a' } }],
    ['query_class', { keys: ['\ud83d'] }],
    ['count_objects', { where: { title: { $regex: '\ud83d' } } }],
    ['aggregate', { pipeline: [{ $match: { title: '\ud83d' } }] }],
    ['aggregate', { pipeline: [{ $project: { x: { $concat: ['$title', '\ud83d'] } } }] }],
    ['export_data', { where: { title: '\ud83d' } }],
    ['get_object', { object_id: '\ud83d' }],
    ['atlas_text_search', { query: 'a\ud83d' }],
    // JSON in a text is read as JSON.
    ['query_class', { where: '{"title":"a\\ud800"}' }],
    ['aggregate', { pipeline: '[{"$match":{"title":"\\udc00"}}]' }],
  ])('is refused in every argument, as in writes: %s %j', async (tool, args) => {
    // As a client sends it: the escape of the half stays in the body.
    const { isError, text: said } = await ask('wide', tool, { class_name: 'Report', ...args });
    expect([isError, said]).toEqual([true, expect.stringContaining('half of a surrogate pair')]);
  });

  it('is no half where the other follows', async () => {
    const { isError } = await ask('wide', 'query_class', {
      class_name: 'Report',
      where: { title: '\ud83d\ude00' },
    });
    expect(isError).toBe(false);
  });
});

describe('a list of the protocol', () => {
  it('of resources names every class, however small the results of the agent', async () => {
    const list = async (agent: string) => {
      const { body } = await rpc(service, 'resources/list', {}, key(agent));
      return (body['result'] as { resources: { uri: string }[] }).resources.map(({ uri }) => uri);
    };
    const whole = await list('wide');
    expect(whole).toContain(`parse://${KINDS.at(-1)}/schema`);
    expect(await list('small')).toEqual(whole);
  });
});

describe('a prompt', () => {
  const draw = (args: object) =>
    rpc(service, 'prompts/get', { name: 'parse_relations', ...args }, key('small'));

  it('above the size of its agent is refused, with how to ask for less', async () => {
    expect((await draw({})).body.error?.message).toBe(
      `Prompt output exceeded ${SMALL} bytes. Name fewer classes in its argument.`,
    );
    const { text } = await draw({ arguments: { classes: 'Kind00,Kind01,Report' } });
    expect(text).toContain('Kind01');
  });
});

describe('a resource', () => {
  it('of a class is cut like the result of its tool', async () => {
    const { body } = await rpc(service, 'resources/read', { uri: 'parse://Report/samples' }, key('small'));
    const [{ text }] = (body['result'] as { contents: [{ text: string }] }).contents;
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(SMALL);
    expect(text).toContain('response_exceeded_max_bytes');
  });

  it('of an export comes in parts, each within the size of its agent, and lacks no row', async () => {
    const order = { class_name: 'Report', columns: ['summary'], delivery: 'resource' };
    const { text } = await ask('small', 'export_data', order);
    let uri: string | undefined = (JSON.parse(text) as { uri: string }).uri;
    let whole = '';
    let parts = 0;
    for (; uri !== undefined; parts += 1) {
      const { body } = await rpc(service, 'resources/read', { uri }, key('small'));
      const { contents } = body['result'] as { contents: { text: string; uri: string }[] };
      expect(Buffer.byteLength(contents.map((part) => part.text).join(''))).toBeLessThanOrEqual(SMALL);
      whole += contents[0]?.text ?? '';
      uri = contents[1]?.uri;
    }
    expect(parts).toBeGreaterThan(3);
    expect(whole.match(/Of \d+: y/g)).toHaveLength(COUNT);
  });
});

// The figures of docs/operations/performance.md; `QUESTIONS=print` shows them.
describe('the question which reports say something of 17', () => {
  const conversations = {
    // One answer of megabytes, which holds what was asked.
    wide: [['query_class', { limit: 60 }]],
    // The body is left out and the hint says so: one call more, for the row that is wanted.
    shipped: [
      ['query_class', { limit: 60 }],
      ['get_object', { object_id: 'report0017' }],
    ],
  } as const;

  it('costs a fortieth of the tokens under the size that comes with Parley', async () => {
    const costs = new Map<string, number>();
    for (const [agent, calls] of Object.entries(conversations)) {
      let tokens = 0;
      for (const [name, args] of calls) {
        const { text } = await ask(agent, name, { class_name: 'Report', ...args });
        tokens += toTokens(JSON.stringify({ name, arguments: args })) + toTokens(text);
      }
      costs.set(agent, tokens);
    }
    if (process.env['QUESTIONS'] === 'print') process.stdout.write(`${JSON.stringify([...costs])}\n`);
    expect(costs.get('wide')).toBeGreaterThan(850_000);
    expect(costs.get('shipped')).toBeLessThan(30_000);
  });
});
