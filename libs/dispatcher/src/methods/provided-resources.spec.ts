import { describe, expect, it } from 'vitest';
import { type Refusal, refusals, Refused } from '#core';
import { kernelUnderTest, MODERN, NOVEMBER, readResult, smallAgent } from '../contracts/kernel-under-test.js';
import { type ResourceProvider, ResourceRegistry } from '../resources/resource-registry.js';

/** Notes with separate content per principal. */
const notes: ResourceProvider = {
  scheme: 'note',
  templates: [{ uriTemplate: 'note://{owner}/{name}', name: 'A note' }],
  list: ({ agent }) => [{ uri: `note://${agent.principal}/one`, name: 'one', mimeType: 'text/plain' }],
  read: (uri, { agent }) => {
    if (uri.endsWith('/refused')) throw new Refused(refusals.hiddenClass('Secret'));
    if (uri.endsWith('/large')) return [{ uri, text: 'x'.repeat(4_194_305) }];
    return uri === `note://${agent.principal}/one` ? [{ uri, text: 'mine' }] : undefined;
  },
};

function withNotes() {
  const resources = new ResourceRegistry();
  const unregister = resources.register(notes);
  return { ...kernelUnderTest(undefined, resources), resources, unregister };
}

describe('resources of a provider', () => {
  it('are listed behind those of the classes, as the caller may see them', async () => {
    const { ask } = withNotes();
    const { resources } = readResult(await ask('resources/list', {}, { agent: smallAgent({}, 'bob') })) as {
      resources: { uri: string }[];
    };
    expect(resources.at(0)?.uri).toBe('parse://Post/schema');
    expect(resources.at(-1)).toEqual({ uri: 'note://bob/one', name: 'one', mimeType: 'text/plain' });
  });

  it('are none where the provider denies the list, and an error where it refuses for a time', async () => {
    const { ask, resources } = withNotes();
    let refusal: Refusal = refusals.hiddenClass('Secret');
    const list = () => {
      throw new Refused(refusal);
    };
    resources.register({ ...notes, scheme: 'memo', list });
    expect(readResult(await ask('resources/list')).resources).toContainEqual(
      expect.objectContaining({ uri: 'note://ada/one' }),
    );
    refusal = refusals.rateLimited(60, 60, 2);
    expect(await ask('resources/list')).toMatchObject({
      error: { code: -32603, message: refusal.message },
    });
  });

  it('have their templates listed', async () => {
    const { ask } = withNotes();
    const { resourceTemplates } = readResult(await ask('resources/templates/list')) as {
      resourceTemplates: { uriTemplate: string }[];
    };
    expect(resourceTemplates.at(-1)?.uriTemplate).toBe('note://{owner}/{name}');
  });

  it('are read with blocks and addresses as given, whatever the case of the scheme', async () => {
    const { ask } = withNotes();
    expect(readResult(await ask('resources/read', { uri: 'note://ada/one' }))).toEqual({
      contents: [{ uri: 'note://ada/one', text: 'mine' }],
    });
    expect(await ask('resources/read', { uri: 'NOTE://ada/one' })).toMatchObject({ error: { code: -32002 } });
  });

  it.each([
    ['of another principal', 'note://bob/one'],
    ['refused by its provider', 'note://ada/refused'],
  ])('are not found when %s', async (_title, uri) => {
    const { ask } = withNotes();
    const absent = { message: 'Resource not found', data: { uri } };
    expect(await ask('resources/read', { uri }, MODERN)).toMatchObject({
      error: { code: -32602, ...absent },
    });
    expect(await ask('resources/read', { uri }, NOVEMBER)).toMatchObject({
      error: { code: -32002, ...absent },
    });
  });

  it('are refused beyond the size limit', async () => {
    const { ask } = withNotes();
    expect(await ask('resources/read', { uri: 'note://ada/large' })).toMatchObject({
      error: { code: -32603, message: 'Resource exceeded 4194304 bytes.' },
    });
  });

  it('are gone when their provider is', async () => {
    const { ask, unregister } = withNotes();
    unregister();
    expect(await ask('resources/read', { uri: 'note://ada/one' })).toMatchObject({ error: { code: -32602 } });
  });
});

describe('the resource registry', () => {
  it.each(['parse', 'note', 'Upper', '', 'a b', '1st'])('refuses the scheme %j', (scheme) => {
    const registry = new ResourceRegistry();
    registry.register(notes);
    expect(() => registry.register({ ...notes, scheme })).toThrow(TypeError);
  });

  it('reports every change', () => {
    const registry = new ResourceRegistry();
    let changes = 0;
    registry.changes.subscribe(() => (changes += 1));
    const unregister = registry.register(notes);
    unregister();
    unregister();
    expect(changes).toBe(2);
  });
});
