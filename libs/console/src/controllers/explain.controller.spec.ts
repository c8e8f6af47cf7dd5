import { describe, expect, it } from 'vitest';
import { NotServed } from '#streaming';
import { ExplainController, SimulationsBusy } from './explain.controller.js';
import { ChangesQuery, PolicyController } from './policy.controller.js';

const refusal = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => (error instanceof NotServed ? [error.status, error.message] : error),
  );

describe('simulations', () => {
  it('of which too many wait are refused for now, whatever was asked', async () => {
    const busy = () => Promise.reject(new SimulationsBusy());
    const service = {
      catalogue: busy,
      simulate: busy,
      surface: busy,
      listClasses: busy,
      changes: busy,
      canTry: true,
      tryPolicy: busy,
      widened: () => Promise.resolve(null),
    };
    const explain = new ExplainController(service, {} as never);
    const policy = new PolicyController({} as never, {} as never, {} as never, service);
    const page = { after: '', limit: 1 };
    for (const asked of [
      explain.catalogue(),
      explain.explain({} as never, { agent: 'a', tool: 't', args: {} }),
      policy.agents(),
      policy.agent('a', page),
      policy.listClasses('a', page),
      policy.changes({}),
    ])
      expect(await refusal(asked)).toEqual([503, 'too many questions wait already']);
  });

  it('compare a version with a later one alone', async () => {
    const policy = new PolicyController({} as never, {} as never, {} as never, {} as never);
    for (const [from, to] of [
      [2, 1],
      [2, 2],
    ])
      expect(await refusal(policy.changes(Object.assign(new ChangesQuery(), { from, to })))).toEqual([
        400,
        'from must be the number of a version before to',
      ]);
  });
});
