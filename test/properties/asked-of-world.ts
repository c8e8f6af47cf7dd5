import fc from 'fast-check';
import { guardedColumns, probes } from './probes.js';
import { requests } from './requests.js';
import type { Request } from './asked-service.js';
import { AgentSight } from './sight.js';
import { type ClassName, CLASS_NAMES, columnNames } from './vocabulary.js';
import { changeRequests } from './change-requests.js';
import { codedRequests, earlierRequests, keyedRequests } from './two-tenants.js';
import { type World, worlds, worldsOfSets } from './world.js';

/** A world and what is asked in it. */
export interface AskedWorld {
  readonly world: World;
  readonly asked: readonly Request[];
  /** What is done before, in one of the two worlds: nothing of it is to be seen in the other. */
  readonly earlier: readonly Request[];
  /** Asked last: writes that one of the worlds may refuse, without saying what others hold. */
  readonly coded: readonly Request[];
}

/** Of so many candidates the first one is asked that names nothing the agent may not know. */
const CANDIDATES = 5;

const slot = fc.record({
  candidates: fc.array(requests, { minLength: CANDIDATES, maxLength: CANDIDATES }),
  /** Asked as it is, whatever it names. */
  wild: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
});

/** By number among the columns that are guarded in a world, and among the ways to ask about one. */
const probe = fc.record({ column: fc.nat(1000), way: fc.nat(1000) });

/**
 * Most requests name what their agent may know, so that many are answered; some try their luck, and some go straight for what is
 * guarded.
 */
export const askedWorlds = (
  requestsEach: number,
  from: fc.Arbitrary<World> = worlds,
): fc.Arbitrary<AskedWorld> =>
  fc
    .record({
      world: from,
      slots: fc.array(slot, { minLength: requestsEach, maxLength: requestsEach }),
      probed: fc.array(probe, { minLength: requestsEach / 2, maxLength: requestsEach / 2 }),
    })
    .map(({ world, slots, probed }) => {
      const sight = new AgentSight(world);
      const guarded = guardedColumns(sight);
      const avoided = namesToAvoid(world, sight);
      const probing = probed.flatMap(({ column, way }) => {
        const [name, chosen] = guarded[column % guarded.length] ?? [];
        const ways = name && chosen ? probes(name, chosen) : [];
        return ways[way % ways.length] ?? [];
      });
      const random = slots.map(({ candidates, wild }) => {
        const fitting = candidates.find((one) => !namesOneOf(one, avoided));
        return (wild ? candidates[0] : (fitting ?? candidates[0])) as Request;
      });
      // Writes are among the random ones: what is guarded is asked for before they make rows like each other.
      return {
        world,
        asked: [...probing, ...keyedRequests(world), ...random],
        earlier: earlierRequests(world),
        coded: codedRequests(world),
      };
    });

/** Change sets, the agent's own and those of another one. */
export const askedOfSets: fc.Arbitrary<AskedWorld> = worldsOfSets.chain((world) =>
  changeRequests(world).map((asked) => ({ world, asked, earlier: [], coded: [] })),
);

function namesOneOf(request: Request, names: readonly string[]): boolean {
  const text = JSON.stringify(request);
  return names.some((name) => text.includes(name));
}

function namesToAvoid(world: World, sight: AgentSight): string[] {
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
