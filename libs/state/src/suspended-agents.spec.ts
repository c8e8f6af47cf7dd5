import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Agent, compileAgentDefinition, deriveAgent, Refused } from '#core';
import { openRedisFixture, type RedisFixture } from './contracts/redis.fixture.js';
import { processState } from './open-shared-state.js';
import { SharedStateUnavailable } from './ports/stores.js';
import type { SharedState } from './ports/shared-state.js';
import { SuspendedAgents } from './suspended-agents.js';

const REASON = 'its key leaked';
const createAgent = (name: string) => new Agent({ definition: compileAgentDefinition(name), principal: 'p' });
const analyst = createAgent('analyst');
const other = createAgent('other');
const suspendAnalyst = (agents: SuspendedAgents, by = 'key:chief') =>
  agents.suspend({ agent: 'analyst', by, reason: REASON });
const isAdmitted = async (agents: SuspendedAgents, agent: Agent) => {
  try {
    await agents.assertActive(agent);
    return true;
  } catch (error) {
    if (error instanceof Refused && error.refusal.gate === 'suspension') return false;
    throw error;
  }
};

let fixture: RedisFixture;
beforeAll(async () => {
  fixture = await openRedisFixture();
}, 60_000);
afterAll(() => fixture.close());

const opened: SuspendedAgents[] = [];
function open(state: SharedState): SuspendedAgents {
  const agents = new SuspendedAgents(state);
  opened.push(agents);
  return agents;
}
afterEach(() => {
  vi.restoreAllMocks();
  for (const agents of opened.splice(0)) agents.close();
});

describe('a suspended agent', () => {
  it('is refused with the agents that it made, and no other agent is, until it is resumed', async () => {
    const agents = open(processState());
    expect(await isAdmitted(agents, analyst)).toBe(true);
    expect(await suspendAnalyst(agents)).toBe(true);
    expect(await isAdmitted(agents, analyst)).toBe(false);
    expect(await isAdmitted(agents, deriveAgent(deriveAgent(analyst)))).toBe(false);
    expect(await isAdmitted(agents, other)).toBe(true);
    expect(await agents.resume('analyst')).toBe(true);
    expect(await isAdmitted(agents, deriveAgent(analyst))).toBe(true);
    expect(await agents.resume('analyst')).toBe(false);
  });

  it('stays as it was suspended first when it is suspended again', async () => {
    const agents = open(processState());
    await suspendAnalyst(agents);
    const before = agents.list();
    expect(await suspendAnalyst(agents, 'key:other')).toBe(false);
    expect(agents.list()).toEqual(before);
    expect(before).toEqual([
      { agent: 'analyst', by: 'key:chief', reason: REASON, since: expect.any(String) },
    ]);
  });

  it('is refused without the reason and the name of the operator', async () => {
    const agents = open(processState());
    await suspendAnalyst(agents);
    expect(() => agents.assertActive(analyst)).toThrow(
      expect.objectContaining({
        refusal: { code: 'access_denied', gate: 'suspension', message: "agent 'analyst' is suspended" },
      }),
    );
  });

  it('stays suspended when clocks are set back or forward', async () => {
    const agents = open(processState());
    await suspendAnalyst(agents);
    for (const shift of [-10 * 365 * 86_400_000, 10 * 365 * 86_400_000]) {
      vi.spyOn(Date, 'now').mockReturnValue(Date.now() + shift);
      expect(await isAdmitted(agents, analyst)).toBe(false);
      vi.restoreAllMocks();
    }
  });

  it('may have any name that a definition may have', async () => {
    const agents = open(processState());
    for (const name of ['__proto__', 'constructor', 'a b']) {
      await agents.suspend({ agent: name, by: 'key:chief', reason: REASON });
      expect(await isAdmitted(agents, createAgent(name))).toBe(false);
      await agents.resume(name);
      expect(await isAdmitted(agents, createAgent(name))).toBe(true);
    }
  });

  it('ends what follows it at once, and what begins to follow it later', async () => {
    const agents = open(processState());
    const ended: string[] = [];
    agents.endOf(analyst).subscribe(() => ended.push('before'));
    agents.endOf(other).subscribe(() => ended.push('other'));
    await suspendAnalyst(agents);
    agents.endOf(analyst).subscribe(() => ended.push('after'));
    expect(ended).toEqual(['before', 'after']);
  });
});

describe('replicas over Redis', () => {
  it('all refuse it, those that start later included, and all admit it when one of them resumes it', async () => {
    const prefix = fixture.freshPrefix();
    const [here, there] = [open(await fixture.enter(prefix)), open(await fixture.enter(prefix))];
    expect(await isAdmitted(there, analyst)).toBe(true);
    const news: string[] = [];
    there.changes.subscribe((names) => news.push(...names));
    await suspendAnalyst(here);
    await vi.waitFor(() => expect(there.isSuspended(analyst)).toBe(true), { timeout: 10_000 });
    expect(news).toEqual(['analyst']);
    expect(there.list()).toEqual(here.list());
    const later = open(await fixture.enter(prefix));
    expect(later.isSuspended(other)).toBe(true);
    expect(await isAdmitted(later, analyst)).toBe(false);
    expect(await isAdmitted(later, other)).toBe(true);
    await there.resume('analyst');
    await vi.waitFor(() => expect(here.isSuspended(analyst)).toBe(false), { timeout: 10_000 });
  });

  it('lose no suspension when they suspend at the same time', async () => {
    const prefix = fixture.freshPrefix();
    const [here, there] = [open(await fixture.enter(prefix)), open(await fixture.enter(prefix))];
    const names = ['a', 'b', 'c', 'd'];
    await Promise.all(
      names.map((agent, at) => (at % 2 ? here : there).suspend({ agent, by: 'key:chief', reason: REASON })),
    );
    const fresh = open(await fixture.enter(prefix));
    await fresh.assertActive(other);
    expect(fresh.list().map(({ agent }) => agent)).toEqual(names);
  });

  it('keep it for years', async () => {
    const prefix = fixture.freshPrefix();
    await suspendAnalyst(open(await fixture.enter(prefix)));
    await fixture.pass(prefix, 20 * 365 * 86_400_000);
    expect(await isAdmitted(open(await fixture.enter(prefix)), analyst)).toBe(false);
  });

  it('write it again when Redis lost it', async () => {
    const prefix = fixture.freshPrefix();
    const here = open(await fixture.enter(prefix));
    await suspendAnalyst(here);
    for (const { key, client } of await fixture.keys(prefix)) await client.del(key);
    await here.suspend({ agent: 'other', by: 'key:chief', reason: REASON });
    const fresh = open(await fixture.enter(prefix));
    await fresh.assertActive(createAgent('third'));
    expect(fresh.list().map(({ agent }) => agent)).toEqual(['analyst', 'other']);
  });
});

describe('while the shared state cannot be reached', () => {
  const away = () => Promise.reject(new SharedStateUnavailable());
  const withStore = (find: SharedState['revocations']['find']): SharedState =>
    Object.assign(processState(), {
      reach: 'replicas',
      revocations: Object.assign(processState().revocations, { find }),
    });

  it('a process that never read it admits nobody', async () => {
    const agents = open(withStore(away));
    await expect(isAdmitted(agents, other)).rejects.toThrow(SharedStateUnavailable);
    expect(agents.isSuspended(other)).toBe(true);
  });

  it('a process that read it keeps what it knew, and suspends and resumes nobody', async () => {
    let isAway = false;
    const { revocations } = processState();
    const state = withStore((id) => (isAway ? away() : revocations.find(id)));
    state.revocations.create = (...given) => revocations.create(...given);
    const agents = open(state);
    await suspendAnalyst(agents);
    isAway = true;
    expect(await isAdmitted(agents, analyst)).toBe(false);
    expect(await isAdmitted(agents, other)).toBe(true);
    await expect(agents.resume('analyst')).rejects.toThrow(SharedStateUnavailable);
    expect(await isAdmitted(agents, analyst)).toBe(false);
  });
});
