import 'reflect-metadata';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { ListedAndPermitted } from '../../properties/listed-and-permitted.js';
import { openService } from '../../properties/service-in-process.js';
import { plainWorlds, spreadWorlds, worlds } from '../../properties/world.js';
import { worldsApart } from '../../properties/worlds-apart.js';

const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));

let embedded: EmbeddedMongo;
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
});
afterAll(() => embedded?.close());

const TOOLS = BUILT_IN_TOOLS.flatMap((tool) =>
  toolDeclarations(tool.prototype as object).map(({ definition }) => definition.name),
);

describe(`what is listed, for ${WORLDS} random agents (seed ${SEED})`, () => {
  it.each([
    ['Parse stores', worlds, WORLDS],
    ['other programs store', plainWorlds, Math.max(3, Math.ceil(WORLDS / 3))],
    ['several databases store', spreadWorlds, Math.max(4, Math.ceil(WORLDS / 2))],
  ] as const)(
    'is exactly what a call permits of rows that %s, tools that cannot work left out: tools, classes, fields, resources, completions',
    { timeout: 60_000 + WORLDS * 10_000 },
    async (form, made, numRuns) => {
      const apart: string[] = [];
      for (const [index, drawn] of fc.sample(made, { seed: SEED, numRuns }).entries()) {
        // Every other world lists the tools that cannot work on its database as well: then nothing is left out.
        const listAllTools = index % 2 === 0;
        const world = { ...drawn, switches: { ...drawn.switches, listAllTools } };
        const database = { uri: embedded.uri, name: `listed${index}${form.length}` };
        const service = await openService(world, worldsApart(world).marked, database);
        try {
          for (const { what, listed, permitted } of await new ListedAndPermitted(service, world).all(TOOLS)) {
            const [more, less] = [permitted, listed].map((names) => names.join(' '));
            const leavesOut = what === 'tools/list' && !listAllTools;
            if (leavesOut ? listed.every((name) => permitted.includes(name)) : more === less) continue;
            const rules = Object.entries(world.classes).map((entry) => JSON.stringify(entry));
            apart.push(
              [what, `listed     ${less}`, `permitted  ${more}`, JSON.stringify(world.agent), ...rules].join(
                '\n',
              ),
            );
          }
        } finally {
          await service.close();
        }
      }
      expect(apart.join('\n\n')).toBe('');
    },
  );
});
