import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition } from '#core';
import { ClassSchemas } from '#data';
import type { SchemaSnapshot } from '#policy';
import { PermittedTools, type ToolDefinition } from '#tools';
import { changesOfClasses } from './list-changes.js';

let names: readonly string[] = [];

class Lists extends PermittedTools {
  list() {
    return [];
  }

  listTools() {
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
    const agents = [compileAgentDefinition('reader', {})];
    changesOfClasses({ first: null, renewals }, () => agents, new Lists()).subscribe(() => (changes += 1));
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
      names = ['A'];
      const agents = [compileAgentDefinition('reader', {})];
      changesOfClasses({ first: snapshot(['A']), renewals }, () => agents, new Lists()).subscribe(
        () => (changes += 1),
      );
      renewals.next(snapshot(read));
      await compared();
      expect(changes).toBe(expected);
    }
  });

  it('are announced at once where a class or its permissions changed, before the lists are compared', async () => {
    const renewals = new Subject<SchemaSnapshot>();
    let changes = 0;
    const agents = [compileAgentDefinition('reader', {})];
    changesOfClasses({ first: snapshot(['A']), renewals }, () => agents, new Lists()).subscribe(
      () => (changes += 1),
    );
    renewals.next(snapshot(['A', 'B']));
    expect(changes).toBe(1);
    renewals.next(snapshot(['A']));
    expect(changes).toBe(2);
    await compared();
    expect(changes).toBe(2);
  });

  it('are compared for one agent at a time, with calls in between', async () => {
    let turns = 0;
    const compares: number[] = [];
    class Counted extends Lists {
      override listTools() {
        compares.push(turns);
        return super.listTools();
      }
    }
    const agents = ['one', 'two', 'three'].map((name) => compileAgentDefinition(name, {}));
    const renewals = new Subject<SchemaSnapshot>();
    changesOfClasses({ first: snapshot(['A']), renewals }, () => agents, new Counted()).subscribe();
    for (; turns < 20; turns += 1) await new Promise(setImmediate);
    expect(compares).toHaveLength(3);
    expect(new Set(compares).size).toBe(3);
  });
});
