import { beforeAll, describe, expect, it } from 'vitest';
import { post, rpc, type Service, startService } from '../../support/service.js';

/* An answer may repeat what was asked, but not for each of many classes, columns or rows. */

const CLASSES = Array.from({ length: 100 }, (_, at) => `Class${at}`);
const LONG = 100_000;
/** Bytes of the text of a result. */
const MOST = 65_536;
/** An answer has a result as text and as data, and an error may name what it refuses. */
const TIMES = 4;
const SHAPES = [`${'x'.repeat(LONG)},`, 'Class1,'.repeat(LONG / 10)];
const HEADERS = { 'X-MCP-API-Key': 'key-of-person', 'MCP-Protocol-Version': '2025-11-25' };

let service: Service;
beforeAll(async () => {
  const fields = { text: { type: 'String' }, next: { type: 'Pointer', targetClass: 'Class0' } };
  service = await startService({
    seed: {
      schemas: CLASSES.map((className) => ({ className, fields })),
      objects: { Class1: [{ objectId: 'one', text: 'one' }] },
    },
    config: {
      agents: { person: { permissions: 'admin', rateLimit: 1_000_000, maxResultBytes: MOST } },
      auth: [{ agent: 'person', apiKey: 'key-of-person' }],
      policy: { unlistedClasses: 'allow' },
    },
    env: Object.fromEntries(
      ['WRITE_TOOLS', 'RAW_CRUD', 'SCHEMA_OPS'].map((gate) => [`PARSE_AGENT_ALLOW_${gate}`, 'true']),
    ),
  });
}, 90_000);

/** How many times larger than its request an answer is, beyond a whole result. */
async function measure(method: string, params: object): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const { text } = await post(service, body, HEADERS);
  expect(text).not.toBe('');
  expect(text).not.toContain('Payload Too Large');
  return (Buffer.byteLength(text) - 2 * MOST) / Buffer.byteLength(body);
}

const arrays = (text: string) => [[text], Array.from({ length: 2_000 }, () => text.slice(0, LONG / 2_000))];
const values = (text: string): readonly unknown[] => [text, ...arrays(text), { [text]: text }];

/** Of the arguments that some tool requires. */
const REQUIRED: Readonly<Record<string, unknown>> = {
  class_name: 'Class1',
  object_id: 'one',
  ids: ['one'],
  fields: { text: 'new' },
  pipeline: [{ $match: {} }],
  field: 'text',
  interval: 'day',
};

interface Schema {
  readonly properties?: Record<string, unknown>;
  readonly required?: readonly string[];
}
/** What a tool is not refused without. */
const pickRequired = ({ required = [] }: Schema): object =>
  Object.fromEntries(required.map((name) => [name, REQUIRED[name] ?? 'text']));

interface Listed {
  readonly name: string;
  readonly inputSchema: Schema;
  readonly arguments?: readonly { readonly name: string }[];
}
const list = async (kind: 'tools' | 'prompts'): Promise<readonly Listed[]> =>
  ((await rpc(service, `${kind}/list`, {}, HEADERS)).body['result'] as Record<string, Listed[]>)[kind] ?? [];

describe.each(SHAPES.map((text) => [text.slice(0, 8), text]))(
  'a long text that begins with %s',
  (_, text) => {
    it('is repeated a few times at most, whatever method it was given to', async () => {
      const prompts = await list('prompts');
      const refs = [
        ...prompts.map(({ name }) => ({ type: 'ref/prompt', name })),
        { type: 'ref/resource', uri: 'parse://{className}/schema' },
        { type: 'ref/resource', uri: text },
      ];
      const named = [...new Set(prompts.flatMap((prompt) => prompt.arguments ?? []).map(({ name }) => name))];
      const asked: [string, object][] = [
        ...refs.flatMap((ref) =>
          ['className', ...named].map((name): [string, object] => [
            'completion/complete',
            { ref, argument: { name, value: text }, context: { arguments: { class_name: text } } },
          ]),
        ),
        ...prompts.flatMap(({ name, arguments: given = [] }) => [
          ['prompts/get', { name, arguments: Object.fromEntries(given.map((one) => [one.name, text])) }] as [
            string,
            object,
          ],
          ['prompts/get', { name, arguments: { [text]: text } }] as [string, object],
        ]),
        ['prompts/get', { name: text }],
        ['resources/read', { uri: text }],
        ['resources/read', { uri: `parse://${text}/count` }],
        ['resources/list', { cursor: text }],
        ['tools/list', { cursor: text }],
        ['tools/call', { name: text }],
        ['logging/setLevel', { level: text }],
        [text, {}],
      ];
      const larger: string[] = [];
      for (const [method, params] of asked)
        if ((await measure(method, params)) > TIMES)
          larger.push(`${method} ${JSON.stringify(params)}`.slice(0, 120));
      expect(larger).toEqual([]);
    });

    it(
      'is repeated a few times at most, whatever argument of a tool it was',
      { timeout: 300_000 },
      async () => {
        const larger: string[] = [];
        for (const { name, inputSchema } of await list('tools'))
          for (const argument of Object.keys(inputSchema.properties ?? {}))
            for (const value of values(text)) {
              const args = { ...pickRequired(inputSchema), [argument]: value };
              if ((await measure('tools/call', { name, arguments: args })) > TIMES)
                larger.push(`${name} ${argument}`);
            }
        expect(larger).toEqual([]);
      },
    );
  },
);
