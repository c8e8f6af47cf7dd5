import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentDefinition, compileAgentDefinition } from '#core';
import { ClassSchemas } from '#data';
import type { SchemaSnapshot } from '#policy';
import { PermittedTools, type ToolDefinition } from '#tools';
import { AskedLists, changesOfClasses } from './list-changes.js';

let names: readonly string[] = [];

class Lists extends PermittedTools {
  list() {
    return [];
  }

  listTools(_caller: { readonly agent: Agent }) {
    const inputSchema = { properties: { class_name: { enum: names } } };
    return [{ name: 'query_class', inputSchema } as unknown as ToolDefinition];
  }
}

const snapshot = (
  classes: readonly string[],
  columns: readonly string[] = [],
  rights: object | null = null,
) =>
  new ClassSchemas(
    classes.map((className) => ({
      className,
      fields: new Map(columns.map((name) => [name, { type: 'String' as const }])),
      indexes: [],
      classLevelPermissions: rights,
    })) as never,
  );

/** More turns of the event loop than comparisons of a few agents take. */
async function compared(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

describe('classes that are read again', () => {
  it('are a change of lists where the classes, permissions or a list differ, and at no other time', async () => {
    const renewals = new Subject<SchemaSnapshot>();
    let changes = 0;
    const reader = compileAgentDefinition('reader', {});
    const lists = new AskedLists(() => new Map([['reader', reader]]), new Lists());
    names = ['A'];
    await lists.add(reader);
    changesOfClasses({ first: null, renewals }, lists).subscribe(() => (changes += 1));
    const after = async (read: SchemaSnapshot, listed: readonly string[]) => {
      names = listed;
      const before = changes;
      renewals.next(read);
      await compared();
      return changes - before;
    };
    expect(await after(snapshot(['A']), ['A'])).toBe(0);
    expect(await after(snapshot(['A']), ['A'])).toBe(0);
    expect(await after(snapshot(['A'], ['title']), ['A'])).toBe(0);
    expect(await after(snapshot(['A', 'B'], ['title']), ['A', 'B'])).toBe(1);
    expect(await after(snapshot(['A', 'B'], ['title'], { find: {} }), ['A', 'B'])).toBe(1);
    expect(await after(snapshot(['A', 'B'], [], { find: {} }), ['A'])).toBe(1);
    expect(await after(snapshot(['A', 'B'], [], { find: {} }), ['A'])).toBe(0);
  });

  it('are a change at the first time, where they differ from what the start read', async () => {
    for (const [read, expected] of [
      [['A'], 0],
      [['A', 'B'], 1],
    ] as const) {
      const renewals = new Subject<SchemaSnapshot>();
      let changes = 0;
      const lists = new AskedLists(() => new Map(), new Lists());
      changesOfClasses({ first: snapshot(['A']), renewals }, lists).subscribe(() => (changes += 1));
      renewals.next(snapshot(read));
      await compared();
      expect(changes).toBe(expected);
    }
  });

  it('are announced at once where a class or its permissions changed, before the lists are compared', async () => {
    const renewals = new Subject<SchemaSnapshot>();
    let changes = 0;
    const lists = new AskedLists(() => new Map(), new Lists());
    changesOfClasses({ first: snapshot(['A']), renewals }, lists).subscribe(() => (changes += 1));
    renewals.next(snapshot(['A', 'B']));
    expect(changes).toBe(1);
    renewals.next(snapshot(['A']));
    expect(changes).toBe(2);
    await compared();
    expect(changes).toBe(2);
  });
});

describe('lists that clients asked for', () => {
  const of = (...definitions: readonly AgentDefinition[]) =>
    new Map(definitions.map((definition) => [definition.name, definition]));
  const [reader, writer] = [compileAgentDefinition('reader', {}), compileAgentDefinition('writer', {})];

  it('are compared, and those of other agents are not made', async () => {
    const made: string[] = [];
    class CountedLists extends Lists {
      override listTools(caller: { readonly agent: Agent }) {
        made.push(caller.agent.definition.name);
        return super.listTools(caller);
      }
    }
    const lists = new AskedLists(() => of(reader, writer), new CountedLists());
    await lists.add(reader);
    made.length = 0;
    names = ['Another'];
    expect(await lists.compare()).toBe(true);
    expect(await lists.compare()).toBe(false);
    expect(made).toEqual(['reader', 'reader']);
  });

  it('are compared for one agent at a time, with calls in between', async () => {
    let turns = 0;
    const compares: number[] = [];
    class TimedLists extends Lists {
      override listTools(caller: { readonly agent: Agent }) {
        compares.push(turns);
        return super.listTools(caller);
      }
    }
    const agents = ['one', 'two', 'three'].map((name) => compileAgentDefinition(name, {}));
    const lists = new AskedLists(() => of(...agents), new TimedLists());
    for (const agent of agents) await lists.add(agent);
    compares.length = 0;
    const comparison = lists.compare();
    for (; turns < 20; turns += 1) await new Promise(setImmediate);
    await comparison;
    expect(compares).toHaveLength(3);
    expect(new Set(compares).size).toBe(3);
  });

  it('differ once for an agent that is gone', async () => {
    let agents = of(reader, writer);
    const lists = new AskedLists(() => agents, new Lists());
    await lists.add(reader);
    expect(await lists.compare()).toBe(false);
    agents = of(writer);
    expect(await lists.compare()).toBe(true);
    expect(await lists.compare()).toBe(false);
  });

  it('differ where they cannot be read', async () => {
    class NoLists extends Lists {
      override listTools(): never {
        throw new Error('the database does not answer');
      }
    }
    const lists = new AskedLists(() => of(reader), new NoLists());
    await lists.add(reader);
    expect(await lists.compare()).toBe(true);
  });

  it('are not kept for an agent that is not of the configuration', async () => {
    const lists = new AskedLists(() => of(reader), new Lists());
    await lists.add(writer);
    expect(await lists.compare()).toBe(false);
  });
});
