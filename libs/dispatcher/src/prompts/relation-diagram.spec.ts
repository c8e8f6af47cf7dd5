import { McpRequest } from '#core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { relationEdges } from '#tools';
import { smallAgent, SmallRecords } from '../contracts/kernel-under-test.js';
import { drawRelations } from './built-in-prompts.js';

const className = fc.constantFrom('Post', 'Author', 'Tag', '_User', '_Session', 'Hidden');
const fieldName = fc.constantFrom('a', 'b', 'secret', 'not a name');
const relation = fc.record({
  type: fc.constantFrom('Pointer' as const, 'Relation' as const, 'String' as const),
  targetClass: className,
});
const classes = fc.dictionary(
  className,
  fc.record({
    fields: fc.dictionary(fieldName, relation),
    readable: fc.uniqueArray(fieldName),
    visible: fc.boolean(),
  }),
);

async function known(given: Record<string, object>, except: readonly string[]) {
  const records = new SmallRecords(given as ConstructorParameters<typeof SmallRecords>[0]);
  return records.for(new McpRequest(smallAgent({ classes: { except } }))).classes();
}

describe('the relation diagram', () => {
  it('never names a class the agent may not know, nor a field it may not read', async () => {
    await fc.assert(
      fc.asyncProperty(classes, fc.uniqueArray(className), async (given, except) => {
        const governed = await known(given, except);
        const names = new Set(governed.map((one) => one.className));
        const readable = new Set(
          governed.flatMap((one) => one.fields.map((field) => `${one.className}.${field}`)),
        );
        for (const { from, to, via } of relationEdges(governed)) {
          expect([names.has(from), names.has(to), readable.has(via)]).toEqual([true, true, true]);
        }
      }),
    );
  });

  it('never leaves a subset', async () => {
    await fc.assert(
      fc.asyncProperty(classes, fc.uniqueArray(className), async (given, chosen) => {
        const subset = new Set<string>(chosen);
        for (const { from, to } of relationEdges(await known(given, []), subset)) {
          expect([subset.has(from), subset.has(to)]).toEqual([true, true]);
        }
      }),
    );
  });

  it('draws only the visible classes where any is declared visible', async () => {
    const pointer = { author: { type: 'Pointer' as const, targetClass: 'Author' } };
    const governed = await known(
      {
        Post: { fields: pointer, visible: true },
        Author: { fields: {}, visible: true },
        Note: { fields: pointer },
      },
      [],
    );
    expect(drawRelations(relationEdges(governed))).toBe('Author ─1:N→ Post  (Post.author)');
  });

  it('says so when there is nothing to draw', () => {
    expect(drawRelations([])).toBe('(no class relations defined)');
  });
});
