import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Caller, createTestingApplication, type TestingApplication } from '@parley/testing';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';

const classes = { ...POSTS_POLICY.classes, Post: { ...POSTS_POLICY.classes.Post, allowCollscan: true } };
const serving = (policy: object) =>
  createTestingApplication({
    seed: POSTS_SEED,
    agents: { analyst: { tenantId: 'acme' } },
    policy: { ...POSTS_POLICY, classes, refuseCollscan: true, ...policy },
  });

let app: TestingApplication;
let pretty: TestingApplication;
beforeAll(async () => {
  app = await serving({});
  pretty = await serving({ prettyText: true });
});
afterAll(async () => {
  await app.close();
  await pretty.close();
});

const indented = (text: string) => JSON.stringify(JSON.parse(text), null, 2);
const compact = (text: string) => JSON.stringify(JSON.parse(text));

const CALLS: readonly (readonly [tool: string, args: object])[] = [
  ['query_class', {}],
  // Rows are written as they are read once their class was met before.
  ['query_class', {}],
  ['query_class', { limit: 1, include: ['author'] }],
  ['query_class', { format: 'csv' }],
  ['count_objects', {}],
  ['get_schema', {}],
  ['get_sample_objects', {}],
  ['aggregate', { pipeline: [{ $group: { _id: '$status', n: { $sum: 1 } } }, { $sort: { _id: 1 } }] }],
  ['export_data', {}],
];

describe('the text of a result', () => {
  const ask = (caller: Caller, tool: string, args: object) =>
    caller.call(tool, { class_name: 'Post', ...args });

  it.each(CALLS)('of %s %j is compact JSON, the same value as the structured content', async (tool, args) => {
    const { text, data } = await ask(app.as('analyst'), tool, args);
    expect(text).toBe(compact(text));
    expect(JSON.parse(text)).toEqual(data);
  });

  it.each(CALLS)(
    'of %s %j has indentation under prettyText, and is otherwise the same',
    async (tool, args) => {
      const plain = await ask(app.as('analyst'), tool, args);
      const { text, data } = await ask(pretty.as('analyst'), tool, args);
      expect(text).toBe(indented(plain.text));
      expect(data).toEqual(plain.data);
    },
  );

  it('of a refusal that is JSON has the same form', async () => {
    const args = { class_name: 'Author', where: { name: 'Ann' } };
    const refused = (of: TestingApplication) =>
      of.as('analyst').expectRefused('security_blocked', 'collscan', 'query_class', args);
    const { text } = await refused(app);
    expect(text).toBe(compact(text));
    expect((await refused(pretty)).text).toBe(indented(text));
  });

  it('of a resource has the same form', async () => {
    const read = async (of: TestingApplication) => {
      const { contents } = await of.as('analyst').request('resources/read', { uri: 'parse://Post/schema' });
      return (contents as readonly { readonly text: string }[])[0]?.text ?? '';
    };
    const text = await read(app);
    expect(text).toBe(compact(text));
    expect(await read(pretty)).toBe(indented(text));
  });
});
