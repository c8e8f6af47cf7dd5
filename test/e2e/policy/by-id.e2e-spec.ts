import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AS, TENANT_NOTES_SEED, TENANT_NOTES_CONFIG, SECRET } from '../../fixtures/tenant-notes.fixture.js';
import { askModern } from '../../support/modern-call.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, GATES_OPEN, type Service, startService } from '../../support/service.js';

const WAIT = { timeout: 60_000, interval: 50 };
const [, session] = Object.values(TENANT_NOTES_CONFIG.agents);
const AGENTS = { asBob: { ...session, identity: { impersonate: 'bob', label: 'support' } } };
const CALLERS: Readonly<Record<string, Record<string, string>>> = {
  operator: AS.operator,
  'session of ada': AS.ada,
  'agent that acts as ada': AS.assumedAda,
  'agent that impersonates bob': { 'X-MCP-API-Key': 'key-asBob' },
};

let parse: ParseUnderTest;
let services: Readonly<Record<'MongoDB' | 'Parse Server', Service>>;
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(TENANT_NOTES_SEED);
  const plugins = [fileURLToPath(new URL('../../fixtures/plugins/reading-by-id.mjs', import.meta.url))];
  const config = { ...TENANT_NOTES_CONFIG, plugins };
  const impersonating = {
    ...config,
    agents: { ...config.agents, ...AGENTS },
    auth: [...config.auth, { apiKey: 'key-asBob', agent: 'asBob' }],
  };
  const [direct, lone] = await Promise.all([
    startService({ seed: TENANT_NOTES_SEED, config: impersonating, env: GATES_OPEN }),
    startService({ config: { ...config, parse: parse.config }, env: GATES_OPEN }),
  ]);
  services = { MongoDB: direct, 'Parse Server': lone };
}, 120_000);
afterAll(async () => {
  await Promise.all(Object.values(services ?? {}).map((service) => service.stop()));
  await parse?.stop();
});

type Headers = Record<string, string>;
interface Outcome {
  readonly ok: boolean;
  readonly refusal?: { readonly code: string; readonly message: string };
}
/** What a caller sees, and the whole answer. */
interface ShownAnswer {
  readonly code: unknown;
  readonly text: string;
  readonly wire: string;
}

/** A request of the stateless era, of a client that follows tasks. */
const modern = async (service: Service, method: string, params: Record<string, unknown>, headers: Headers) =>
  (await askModern(service, method, params, headers)).body['result'] as Record<string, unknown>;

const answerOf = (outcome: Outcome): ShownAnswer => ({
  code: outcome.refusal?.code,
  text: outcome.refusal?.message ?? '',
  wire: JSON.stringify(outcome),
});

async function bySubAgent(
  service: Service,
  tool: string,
  args: object,
  headers: Headers,
): Promise<ShownAnswer> {
  const answer = await callTool(service, 'by_sub_agent', { tool, args }, headers);
  return answerOf(answer.data['outcome'] as Outcome);
}

async function byTask(service: Service, tool: string, args: object, headers: Headers): Promise<ShownAnswer> {
  const call = { name: 'by_task', arguments: { tool, args } };
  const { taskId } = await modern(service, 'tools/call', call, headers);
  const state = await vi.waitFor(async () => {
    const now = await modern(service, 'tasks/get', { taskId }, headers);
    expect(now['status']).toBe('completed');
    return now as { result: { structuredContent: { outcome: Outcome } } };
  }, WAIT);
  return answerOf(state.result.structuredContent.outcome);
}

const WAYS = { 'a call': callTool, 'a sub-agent': bySubAgent, 'a task': byTask };
const CASES = (['MongoDB', 'Parse Server'] as const).flatMap((route) =>
  Object.keys(WAYS).flatMap((way) =>
    Object.keys(CALLERS)
      // A Parse Server alone can act as nobody but the holder of a session.
      .filter((caller) => route === 'MongoDB' || !caller.startsWith('agent'))
      .map((caller) => [way as keyof typeof WAYS, caller, route] as const),
  ),
);

describe.each(CASES)('by %s of the %s by way of %s', (way, caller, route) => {
  it.each<[string, (id: string) => object]>([
    ['get_object', (object_id) => ({ object_id })],
    ['get_objects', (id) => ({ ids: [id] })],
    ['get_objects', (id) => ({ ids: ['open', id] })],
    ['update_object', (object_id) => ({ object_id, fields: { rank: 9 } })],
    ['delete_object', (object_id) => ({ object_id })],
  ])('%s answers the same for an id of another tenant and one that is nowhere (%#)', async (tool, args) => {
    const [foreign, missing] = await Promise.all(
      ['foreign', 'nowhere'].map((id) =>
        WAYS[way](services[route], tool, { class_name: 'Note', ...args(id) }, CALLERS[caller] as Headers),
      ),
    );
    expect(foreign?.code).toEqual(expect.any(String));
    expect(foreign?.wire).not.toContain(SECRET);
    expect([missing?.code, missing?.text.replaceAll('nowhere', 'foreign')]).toEqual([
      foreign?.code,
      foreign?.text,
    ]);
  });
});
