import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { decideApproval } from '../../support/decide-approval.js';
import { pipelined } from '../../support/pipelined-requests.js';
import { callTool, rpc, type Service, startService } from '../../support/service.js';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';

const free = { rateLimit: 1_000_000, tenantId: 'acme' };
const AGENTS = {
  writer: { ...free, permissions: 'admin' },
  chief: { ...free, permissions: 'admin' },
  stranger: { ...free, classes: { except: ['Author'] } },
  narrow: { ...free, filters: { Post: { likes: { $gte: 0 } } } },
};
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const start = (server: object = {}) =>
  startService({
    seed: POSTS_SEED,
    config: {
      server,
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/publishing.mjs', import.meta.url))],
      policy: { ...POSTS_POLICY, requireApprovalFor: ['write', 'admin'] },
      approvals: { mode: 'desk', approvers: ['chief', 'stranger', 'narrow'] },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });

describe('an approver', () => {
  let service: Service;
  beforeAll(async () => {
    service = await start();
  });
  afterAll(() => service.stop());

  const get = async (agent: string, path = '') => {
    const response = await fetch(`${service.origin}/approvals${path}`, { headers: as(agent) });
    return (await response.json()) as { approvals: { id: string }[]; preview: Record<string, unknown> };
  };
  /** What each approver is shown of a call, which is then denied. */
  const shownOf = async (tool: string, args: object) => {
    const call = callTool(service, tool, args, as('writer'));
    const id = await vi.waitFor(
      async () => {
        const [first] = (await get('chief')).approvals;
        if (!first) throw new Error('no case is open yet');
        return first.id;
      },
      { timeout: 20_000, interval: 50 },
    );
    const shown = {
      chief: (await get('chief', `/${id}`)).preview,
      stranger: (await get('stranger', `/${id}`)).preview,
      narrow: (await get('narrow', `/${id}`)).preview,
    };
    await decideApproval(`${service.origin}/approvals/${id}`, as('chief'), { decision: 'deny' });
    expect((await call).code).toBe('approval_denied');
    return shown;
  };

  it.each<[string, string, object]>([
    ['of a row that goes', 'delete_object', { class_name: 'Post', object_id: 'p01' }],
    [
      'of fields that change',
      'update_object',
      {
        class_name: 'Post',
        object_id: 'p02',
        fields: { author: { __type: 'Pointer', className: 'Author', objectId: 'a1' } },
      },
    ],
    [
      'inside a list of a new row',
      'create_object',
      {
        class_name: 'Post',
        data: { title: 'New', tags: [{ __type: 'Pointer', className: 'Author', objectId: 'a1' }] },
      },
    ],
  ])('learns no id of a class that it may not know: %s', async (_, tool, args) => {
    const { chief, stranger } = await shownOf(tool, args);
    expect(JSON.stringify(chief)).toContain('"objectId":"a1"');
    expect(JSON.stringify(stranger)).not.toContain('"a1"');
    expect(JSON.stringify(stranger)).toContain('"__redacted":true');
  });

  it('does not receive what a method returned to a caller who may read more than itself', async () => {
    const { chief, stranger, narrow } = await shownOf('call_method', {
      class_name: 'Post',
      method_name: 'publish',
      object_id: 'p03',
    });
    expect(chief).toMatchObject({ result: { headline: 'Publish: Body of post 3' } });
    for (const limited of [stranger, narrow]) {
      expect(limited).toEqual({
        class_name: 'Post',
        method: 'publish',
        object_id: 'p03',
        withheld_from_you: ['result'],
      });
    }
  });
});

describe('guessing keys beside MCP', () => {
  it('is counted with guesses on it, whichever route they are spread over', async () => {
    const service = await start({ preAuthRateLimit: { limit: 4, window: 600 } });
    const paths = ['/tools', '/approvals', '/approvals/x'];
    const ask = (path: string, agent: string) => fetch(`${service.origin}${path}`, { headers: as(agent) });
    try {
      for (const path of paths) expect((await ask(path, 'nobody')).status).toBe(401);
      expect((await rpc(service, 'ping', {}, as('nobody'))).status).toBe(401);
      for (const path of paths) {
        const refused = await ask(path, 'nobody');
        expect(refused.status).toBe(429);
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
        // Whether a guess was right is not shown either.
        expect((await ask(path, 'chief')).status).toBe(429);
      }
      expect((await rpc(service, 'ping', {}, as('chief'))).status).toBe(429);
    } finally {
      await service.stop();
    }
  });
});

describe('a crowd beside MCP', () => {
  let service: Service;
  beforeAll(async () => {
    service = await start();
  });
  afterAll(() => service.stop());

  it('does not make the service look away: every probe of a crowd finds it ready', async () => {
    const states = await Promise.all(
      Array.from({ length: 200 }, async () => (await fetch(`${service.origin}/ready`)).status),
    );
    expect(new Set(states)).toEqual(new Set([200]));
  });

  it.each(['/tools', '/approvals', '/health', '/ready', '/nowhere'])(
    'that sends without waiting is answered one after another on each connection, and refused beyond: %s',
    async (path) => {
      const once = String((await fetch(`${service.origin}${path}`, { headers: as('chief') })).status);
      const crowd = Array.from({ length: 4 }, () => pipelined(service.origin, path, as('chief'), 150));
      for (const statuses of await Promise.all(crowd)) {
        expect(statuses.slice(0, 101)).toEqual(Array<string>(101).fill(once));
        expect(statuses.slice(101)).toEqual(Array<string>(49).fill('503'));
      }
    },
  );

  it('that leaves in the middle of a decision is no error of the service', async () => {
    const { port } = new URL(service.origin);
    const head = [
      'POST /approvals/x HTTP/1.1',
      'Host: localhost',
      'X-MCP-API-Key: key-of-chief',
      'Content-Type: application/json',
      'Content-Length: 100',
    ];
    await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(Number(port), '127.0.0.1', () => {
              socket.write(`${head.join('\r\n')}\r\nExpect: 100-continue\r\n\r\n{`);
            });
            // Once it receives `100 Continue`, its request is being worked on.
            socket.once('data', () => socket.destroy());
            socket.once('close', () => resolve());
          }),
      ),
    );
    const decision = await decideApproval(`${service.origin}/approvals/x`, as('chief'), { decision: 'deny' });
    expect(decision.status).toBe(404);
    expect(service.output().stderr).not.toContain('approvals failed');
  });
});
