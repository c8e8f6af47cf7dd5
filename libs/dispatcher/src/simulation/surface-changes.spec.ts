import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LimitOrigin } from '#core';
import { type AgentSurface, type ClassSurface, surfaceChanges, widens } from './policy-surface.js';

const surfaces = (tools: AgentSurface['tools'], classes: Record<string, ClassSurface>) =>
  new Map([['a', { tools, classes: new Map(Object.entries(classes)) }]]);

function post(fields: string[], limits: [LimitOrigin, string][] = []): ClassSurface {
  return {
    tools: new Map([['query_class', new Map(limits)]]),
    fields: new Set(fields),
    masks: new Map(),
    listed: true,
    database: null,
  };
}
const changesOf = (before: ClassSurface, after: ClassSurface) =>
  surfaceChanges(surfaces(new Map(), { Post: before }), surfaces(new Map(), { Post: after }));

const limit = fc.tuple(
  fc.constantFrom<LimitOrigin>('tenant', 'agent filter', 'canonical filter'),
  fc.constantFrom('{"a":1}', '{"b":2}'),
);
const surface = fc
  .record({
    tools: fc.uniqueArray(fc.constantFrom('query_class', 'aggregate', 'get_object')),
    fields: fc.uniqueArray(fc.constantFrom('title', 'body', '*')),
    limits: fc.array(limit),
    listed: fc.boolean(),
  })
  .map(({ tools, fields, limits, listed }) =>
    surfaces(new Map(tools.map((name) => [name, 'runs' as const])), {
      Post: {
        tools: new Map(tools.map((name) => [name, new Map(limits)])),
        fields: new Set(fields),
        masks: new Map(),
        listed,
        database: null,
      },
    }),
  );

describe('the changes between two configurations', () => {
  it('say that a class is one of another database, with other rows', () => {
    const changes = changesOf(post(['title']), { ...post(['title']), database: 'crm' });
    expect(changes).toEqual([
      expect.objectContaining({ className: 'Post', what: 'database', before: 'the first one', after: 'crm' }),
    ]);
    expect(changes.every(widens)).toBe(true);
  });

  it('list what an agent gains and loses', () => {
    expect(changesOf(post(['title', 'body']), post(['title', 'cost']))).toEqual([
      { agent: 'a', className: 'Post', what: 'field', name: 'body', effect: 'lost' },
      { agent: 'a', className: 'Post', what: 'field', name: 'cost', effect: 'gained' },
    ]);
  });

  it('takes a limit that goes for a gain, one that comes for a loss, and a new wording for a possible gain', () => {
    const effect = (before: [LimitOrigin, string][], after: [LimitOrigin, string][]) =>
      changesOf(post([], before), post([], after)).map((change) => [change.effect, widens(change)]);
    expect(effect([['tenant', '{"o":1}']], [])).toEqual([['gained', true]]);
    expect(effect([], [['tenant', '{"o":1}']])).toEqual([['lost', false]]);
    expect(effect([['tenant', '{"o":1}']], [['tenant', '{"o":2}']])).toEqual([['changed', true]]);
  });

  it('count a mask that goes or weakens as a gain, and one that comes or strengthens as a loss', () => {
    const change = (before: string | null, after: string | null) => {
      const side = (mask: string | null) =>
        mask === null ? post(['email']) : { ...post([]), masks: new Map([['email', mask]]) };
      return changesOf(side(before), side(after)).map(({ effect, name, ...told }) => [
        effect,
        told.what,
        name,
      ]);
    };
    expect(change('mask', null)).toEqual([['gained', 'mask', 'email']]);
    expect(change(null, 'deny')).toEqual([['lost', 'mask', 'email']]);
    expect(change('deny', 'mask')).toEqual([['gained', 'mask', 'email']]);
    expect(change('hash', 'mask')).toEqual([['lost', 'mask', 'email']]);
    expect(change('hash', 'mask, last 4 kept')).toEqual([['changed', 'mask', 'email']]);
    expect(change('mask', 'mask, last 4 kept')).toEqual([['gained', 'mask', 'email']]);
    expect(change('mask', 'mask')).toEqual([]);
  });

  it('takes a tool that no longer asks for approval for a gain', () => {
    const asks = surfaces(new Map([['update_object', 'asks approval']]), {});
    const runs = surfaces(new Map([['update_object', 'runs']]), {});
    expect(surfaceChanges(asks, runs).map(widens)).toEqual([true]);
    expect(surfaceChanges(runs, asks).map(widens)).toEqual([false]);
  });

  it('takes all of a new agent for a gain and all of a removed one for a loss', () => {
    const some = surfaces(new Map([['list_tools', 'runs']]), { Post: post(['title']) });
    const effects = (changes: ReturnType<typeof surfaceChanges>) =>
      new Set(changes.map(({ effect }) => effect));
    expect(effects(surfaceChanges(new Map(), some))).toEqual(new Set(['gained']));
    expect(effects(surfaceChanges(some, new Map()))).toEqual(new Set(['lost']));
  });

  it('are none between a configuration and itself', () => {
    fc.assert(fc.property(surface, (one) => surfaceChanges(one, one).length === 0));
  });

  it('never calls a change narrowing whose reverse is narrowing too', () => {
    fc.assert(
      fc.property(surface, surface, (one, other) => {
        const forth = surfaceChanges(one, other);
        const back = surfaceChanges(other, one);
        return forth.length === 0 || forth.some(widens) || back.some(widens);
      }),
    );
  });
});
