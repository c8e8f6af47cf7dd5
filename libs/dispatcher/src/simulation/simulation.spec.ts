import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, refusals } from '#core';
import { smallTool, SmallToolRunner, succeeded } from '../contracts/kernel-under-test.js';
import { GateTrace, recordedSearches, RecordingStore } from './recording-store.js';
import { Simulator, createSimulatedAgent, SimulatedApprover } from './simulation.js';

const agent = createSimulatedAgent(compileAgentDefinition('a', { rateLimit: 1 }));

function simulatorOver(refuse: () => ReturnType<typeof refusals.parseError> | null, asks: boolean) {
  const store = new RecordingStore();
  const runner = new SmallToolRunner().add(smallTool('read'), async () => {
    if (asks) await store.answer({ command: 'find', query: { className: 'Post', where: {}, limit: 1 } }, []);
    const refusal = refuse();
    return refusal ? { ok: false, refusal } : succeeded({});
  });
  return new Simulator(runner, store, new SimulatedApprover());
}

describe('a simulated call', () => {
  it('is allowed when only the empty answer of the store ended it', async () => {
    const missing = () => refusals.objectNotFound('Post', 'p1');
    expect(await simulatorOver(missing, true).simulate(agent, 'read', {})).toMatchObject({ allowed: true });
    expect(await simulatorOver(missing, false).simulate(agent, 'read', {})).toMatchObject({ allowed: false });
  });

  it('is refused when a gate refused after the store was asked', async () => {
    const call = await simulatorOver(() => refusals.hiddenClass('Post'), true).simulate(agent, 'read', {});
    expect(call).toMatchObject({
      allowed: false,
      refusal: { gate: 'class' },
      commands: [{ command: 'find' }],
    });
  });

  it('reports the commands of its own call alone, however many went before', async () => {
    const simulator = simulatorOver(() => null, true);
    await simulator.simulate(agent, 'read', {});
    expect((await simulator.simulate(agent, 'read', {})).commands).toHaveLength(1);
  });

  it('spends nothing of a rate limit', async () => {
    const { rateLimiter } = agent.definition;
    expect(await Promise.all([1, 2, 3].map(() => rateLimiter.check('x')))).toEqual([null, null, null]);
  });
});

describe('a simulated search', () => {
  it.each([true, false, null])('is listed as that of the database: %s', async (can) => {
    const store = new RecordingStore();
    expect(await recordedSearches(store, { canSearch: () => can }).canSearch()).toBe(can);
    expect(await recordedSearches(store).canSearch()).toBeNull();
  });
});

describe('a trace', () => {
  it('keeps the order of gates and lists a repeated one once', () => {
    const trace = new GateTrace();
    trace.notePassed('class', 'Post');
    trace.notePassed('tenant', 'Post');
    trace.notePassed('class', 'Post');
    trace.notePassed('class', 'Author');
    expect(trace.passedGates.map(({ gate, subject }) => `${gate} ${subject}`)).toEqual([
      'class Post',
      'tenant Post',
      'class Author',
    ]);
  });
});
