import fc from 'fast-check';
import { requests } from './requests.js';
import type { Request } from './service-in-process.js';
import { AgentSight } from './sight.js';
import { type ClassName, CLASS_NAMES, columnNames } from './vocabulary.js';
import { type World, worlds } from './world.js';

/** A world and what is asked in it. */
export interface AskedWorld {
  readonly world: World;
  readonly asked: readonly Request[];
}

/** Of so many candidates the first one is asked that names nothing the agent may not know. */
const CANDIDATES = 5;

const slot = fc.record({
  candidates: fc.array(requests, { minLength: CANDIDATES, maxLength: CANDIDATES }),
  /** Asked as it is, whatever it names. */
  wild: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
});

/** Most requests name what their agent may know, so that many are answered; the others try their luck. */
export const askedWorlds = (requestsEach: number): fc.Arbitrary<AskedWorld> =>
  fc
    .tuple(worlds, fc.array(slot, { minLength: requestsEach, maxLength: requestsEach }))
    .map(([world, slots]) => {
      const avoided = namesToAvoid(world);
      return {
        world,
        asked: slots.map(({ candidates, wild }) => {
          const fitting = candidates.find((one) => !namesOneOf(one, avoided));
          return (wild ? candidates[0] : (fitting ?? candidates[0])) as Request;
        }),
      };
    });

function namesOneOf(request: Request, names: readonly string[]): boolean {
  const text = JSON.stringify(request);
  return names.some((name) => text.includes(name));
}

function namesToAvoid(world: World): string[] {
  const sight = new AgentSight(world);
  const clientTools = ['aggregate', 'group_by', 'distinct', 'export_data', 'explain_query'];
  return [
    ...(world.agent.posture === 'client' ? clientTools.map((name) => `"name":"${name}`) : []),
    ...CLASS_NAMES.flatMap((name) => {
      if (isShut(sight, name)) return [name, ...columnNames(name)];
      return columnNames(name).filter((column) => !sight.mayName(name, column));
    }),
  ];
}

function isShut(sight: AgentSight, name: ClassName): boolean {
  return !sight.permits(name, 'find') && !sight.permits(name, 'get');
}
