import 'reflect-metadata';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { choices, permittedQuestion } from '../../properties/permitted-questions.js';
import { openService } from '../../properties/service-in-process.js';
import { plainWorlds, spreadWorlds, type World, worlds } from '../../properties/world.js';
import { worldsApart } from '../../properties/worlds-apart.js';

const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const ASKED = 40;
const KINDS = ['count', 'distinct', 'find', 'group', 'groups', 'include', 'join'];

let embedded: EmbeddedMongo;
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
});
afterAll(() => embedded?.close());

/** With every tool, so that only the rules about data decide. */
const withEveryTool = ({ agent, ...world }: World): World => ({
  ...world,
  switches: { concealHidden: world.switches['concealHidden'] === true },
  agent: {
    ...agent,
    tools: null,
    posture: agent.posture === 'client' ? 'session' : agent.posture,
    child: agent.child && { ...agent.child, tools: null },
  },
});

describe(`what an agent is permitted, in ${WORLDS} random worlds (seed ${SEED})`, () => {
  it.each([
    ['Parse stores', worlds],
    ['other programs store', plainWorlds],
    ['several databases store', spreadWorlds],
  ] as const)(
    'is answered with exactly the rows that counting over them gives where %s them, joins and groups included',
    { timeout: 60_000 + WORLDS * 20_000 },
    async (form, made) => {
      const found: string[] = [];
      const answered = new Map<string, number>();
      const arbitrary = fc.tuple(
        made.map(withEveryTool),
        fc.array(choices, { minLength: ASKED, maxLength: ASKED }),
      );
      // Chance may permit nothing of one kind in all these worlds: then some more are asked.
      for (const [index, [world, chosen]] of fc
        .sample(arbitrary, { seed: SEED, numRuns: WORLDS * 4 })
        .entries()) {
        if (index >= WORLDS && KINDS.every((kind) => answered.has(kind))) break;
        const database = { uri: embedded.uri, name: `permitted${index}${form.length}` };
        const service = await openService(world, worldsApart(world).marked, database);
        try {
          for (const one of chosen) {
            const question = permittedQuestion(world, one);
            if (!question) continue;
            const { request, expected, read } = question;
            const { reply } = await service.ask(request);
            const { structuredContent } = JSON.parse(reply) as {
              structuredContent?: Record<string, unknown>;
            };
            const answer = structuredContent ? read(structuredContent) : reply;
            if (JSON.stringify(answer) !== JSON.stringify(expected)) {
              const rules = Object.entries(world.classes).map((entry) => JSON.stringify(entry));
              const told = [request, world.agent, { expected }, { answer }].map((part) =>
                JSON.stringify(part),
              );
              found.push([...told, ...rules].join('\n'));
              break;
            }
            const empty = JSON.stringify(expected).replaceAll(/[^\w]/g, '') === '';
            if (!empty) answered.set(one.kind, (answered.get(one.kind) ?? 0) + 1);
          }
        } finally {
          await service.close();
        }
      }
      expect(found.join('\n\n')).toBe('');
      // Where nothing is permitted nothing would be shown.
      expect([...answered.keys()].sort()).toEqual(KINDS);
    },
  );
});
