import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Document, parse } from 'yaml';
import { editConfiguration } from './configuration-edits.js';
import type { NarrowedAgent, Narrowing } from './narrowed-agents.js';

let folder = '';
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'parley-suggest-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const narrowed = (agent: string, options: Partial<Record<Narrowing['option'], unknown>>): NarrowedAgent => ({
  agent,
  left: [],
  narrowings: Object.entries(options).map(([option, value]) => ({
    option: option as Narrowing['option'],
    value,
    because: 'the records say so',
  })),
});

/** What the diff makes of a text. */
function patched(text: string, diff: string): string {
  writeFileSync(join(folder, 'parley.yaml'), text);
  const run = spawnSync('git', ['apply', '-p0', '-'], {
    cwd: folder,
    input: diff,
    encoding: 'utf8',
  });
  expect([run.stdout, run.stderr, run.status]).toEqual(['', '', 0]);
  return readFileSync(join(folder, 'parley.yaml'), 'utf8');
}

describe('the text of a configuration', () => {
  it('keeps its comments, its order and its style', () => {
    const text = `# ours
agents:
  support: { permissions: write, tenantId: a } # by phone
  reporting:
    # at night
    tools:
      except: [aggregate] # slow
    rateLimit: 5

  empty:
auth: []
`;
    const { text: suggested, diff } = editConfiguration('parley.yaml', text, [
      narrowed('support', { permissions: 'readonly', tools: ['query_class'] }),
      narrowed('reporting', { tools: ['count_objects'], classes: ['Order', '_User'] }),
      narrowed('empty', { budget: { rows: 7, window: 60 } }),
    ]);
    expect(suggested).toBe(`# ours
agents:
  support: { tools: [query_class], permissions: readonly, tenantId: a } # by phone
  reporting:
    # at night
    classes: [Order, _User]
    tools: [count_objects]
    rateLimit: 5

  empty: { budget: { rows: 7, window: 60 } }
auth: []
`);
    expect(patched(text, diff)).toBe(suggested);
  });

  it('stays JSON where it is JSON', () => {
    const text = '{\n  "agents": { "a": { "permissions": "admin" } }\n}';
    const { text: suggested, diff } = editConfiguration('parley.yaml', text, [
      narrowed('a', { tools: ['query_class'], permissions: 'readonly' }),
    ]);
    expect(JSON.parse(suggested)).toEqual({
      agents: { a: { tools: ['query_class'], permissions: 'readonly' } },
    });
    expect(patched(text, diff)).toBe(suggested);
  });

  it('is left where others may share what stands there, and names the agent', () => {
    const text =
      'agents:\n  a: &shared { rateLimit: 5 }\n  b: *shared\n  c:\n    <<: *shared\n    tenantId: x\n';
    const all = ['a', 'b', 'c', 'absent'].map((agent) => narrowed(agent, { tools: [] }));
    expect(editConfiguration('parley.yaml', text, all)).toEqual({
      text,
      diff: '',
      byHand: ['a', 'b', 'c', 'absent'],
    });
  });

  const NAME = fc.constantFrom('one', 'two words', 'three', "it's");
  const LIST = fc.uniqueArray(fc.constantFrom('query_class', 'Order', 'a.b', 'true', '1', 'ä: b'), {
    maxLength: 4,
  });
  const AGENT = fc.record(
    {
      permissions: fc.constantFrom('readonly', 'admin'),
      tools: fc.oneof(LIST, fc.record({ only: LIST, except: LIST }, { requiredKeys: [] })),
      tenantId: fc.string({ maxLength: 6 }),
      filters: fc.record({ Order: fc.record({ note: fc.string({ maxLength: 120 }) }) }),
      budget: fc.record({ rows: fc.nat() }),
    },
    { requiredKeys: [] },
  );

  it('changes the options that are meant and no others, in every style, and so does the diff', () => {
    fc.assert(
      fc.property(
        fc.dictionary(NAME, fc.option(AGENT), { maxKeys: 4 }),
        fc.dictionary(
          NAME,
          fc.record(
            {
              permissions: fc.constant('readonly'),
              tools: LIST,
              classes: LIST,
              budget: fc.record({ rows: fc.nat() }),
            },
            { requiredKeys: [] },
          ),
          { maxKeys: 4 },
        ),
        fc.constantFrom('any' as const, 'flow' as const),
        fc.constantFrom(0, 80),
        (agents, wanted, collectionStyle, lineWidth) => {
          const config = { server: { port: 1 }, agents, policy: { classes: { Order: { fields: ['a'] } } } };
          const text = new Document(config).toString({ collectionStyle, lineWidth });
          const edited = editConfiguration(
            'parley.yaml',
            text,
            Object.entries(wanted).map(([agent, options]) => narrowed(agent, options)),
          );
          const expected = structuredClone(config) as { agents: Record<string, object | null> };
          for (const [name, options] of Object.entries(wanted)) {
            if (!Object.hasOwn(agents, name)) continue;
            if (Object.keys(options).length > 0)
              expected.agents[name] = { ...expected.agents[name], ...options };
          }
          expect(parse(edited.text)).toEqual(JSON.parse(JSON.stringify(expected)));
          const missing = Object.keys(wanted).filter(
            (name) => !Object.hasOwn(agents, name) && Object.keys(wanted[name] as object).length > 0,
          );
          expect(edited.byHand).toEqual(missing);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is left to an operator where another place names a value by its anchor', () => {
    const text = `agents:
  one: { permissions: &all write, tools: [aggregate] }
  two: { permissions: *all }
`;
    const edited = editConfiguration('parley.yaml', text, [narrowed('one', { permissions: 'readonly' })]);
    expect(edited).toMatchObject({ text, byHand: ['one'] });
    const other = editConfiguration('parley.yaml', text, [narrowed('one', { tools: [] })]);
    expect(parse(other.text)).toMatchObject({
      agents: { one: { tools: [] }, two: { permissions: 'write' } },
    });
  });

  it('is left to an operator where another place names a part of a value by its anchor', () => {
    const text = 'agents:\n  a: { classes: { only: &list [Order] } }\n  b: { classes: { only: *list } }\n';
    const { diff, byHand } = editConfiguration('parley.yaml', text, [narrowed('a', { classes: ['Order'] })]);
    expect({ diff, byHand }).toEqual({ diff: '', byHand: ['a'] });
  });

  it('is what the diff makes of it, however many agents change', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), fc.nat(5), (changed, gap) => {
        const filler = '    # kept\n'.repeat(gap);
        const text = `agents:\n${changed.map((_, at) => `  a${at}:\n${filler}    rateLimit: 5\n`).join('')}`;
        const edited = editConfiguration(
          'parley.yaml',
          text,
          changed.flatMap((is, at) =>
            is ? [narrowed(`a${at}`, { tools: ['x'], permissions: 'readonly' })] : [],
          ),
        );
        if (edited.diff !== '') expect(patched(text, edited.diff)).toBe(edited.text);
      }),
      { numRuns: 40 },
    );
  });
});
