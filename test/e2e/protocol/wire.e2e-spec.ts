import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_SEED, POSTS_CONFIG } from '../../fixtures/posts.fixture.js';
import { callTool, listLogged, rpc, type Service, startService } from '../../support/service.js';

const HEAVY = Array.from({ length: 60 }, (_, index) => ({
  objectId: `h${index}`,
  // The first one alone is larger than any result.
  page: 'y'.repeat(index === 0 ? 4_300_000 : 1),
}));

let service: Service;
beforeAll(async () => {
  const seed = { ...POSTS_SEED, objects: { ...POSTS_SEED.objects, Heavy: HEAVY } };
  service = await startService({ seed, config: POSTS_CONFIG });
});

describe('an answer that cannot be cut to fit', () => {
  it('is refused in words alone, without a code to branch on', async () => {
    const args = { class_name: 'Heavy', format: 'csv' };
    const { body } = await rpc(service, 'tools/call', { name: 'query_class', arguments: args });
    expect(body['result']).toEqual({
      content: [
        { type: 'text', text: expect.stringMatching(/^Tool result exceeded 4194304 bytes \(\d+\)\./) },
      ],
      isError: true,
    });
  });
});

describe('a result that holds a canary', () => {
  it('is returned as it is, and the operator hears of it', async () => {
    const watched = await startService({
      seed: POSTS_SEED,
      config: {
        ...POSTS_CONFIG,
        policy: { ...POSTS_CONFIG.policy, promptInjectionCanaries: ['body OF post 7'] },
      },
    });
    const { isError, data } = await callTool(watched, 'get_object', { class_name: 'Post', object_id: 'p07' });
    expect([isError, data['object_id']]).toEqual([false, 'p07']);
    await callTool(watched, 'get_object', { class_name: 'Post', object_id: 'p08' });
    await watched.stop();
    const canaries = listLogged(watched, 'call').map(({ canary }) => canary);
    expect(canaries.filter(Boolean)).toEqual(['body OF post 7']);
  });
});

describe('a route beside the endpoint', () => {
  it('reads no body, so that nothing of a parser reaches the wire', async () => {
    for (const [path, status] of [
      ['/tools', 405],
      ['/health', 405],
      ['/nowhere', 404],
    ] as const) {
      const response = await fetch(`${service.origin}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{ broken',
      });
      expect([path, response.status]).toEqual([path, status]);
      expect(await response.text()).not.toMatch(/position|property name/);
    }
  });
});
