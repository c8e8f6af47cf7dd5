import 'reflect-metadata';
import fc from 'fast-check';
import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '#embedded-mongo';
import { askedWorlds } from './properties/asked-of-world.js';
import { described, type Tally, violationIn } from './properties/compare-worlds.js';

/** `npm run properties` asks thousands, and names a seed to repeat. */
const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const ASKED = 50;

let embedded: EmbeddedMongo;
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
});
afterAll(() => embedded?.close());

describe(`what an agent may not see, in ${WORLDS} random worlds (seed ${SEED})`, () => {
  it(
    'changes no byte of an answer or an audit record, and stands in none',
    { timeout: 60_000 + WORLDS * 10_000 },
    async () => {
      const tally: Tally = new Map();
      let made = 0;
      const databases = { uri: embedded.uri, next: () => `world${(made += 1)}` };
      const found: string[] = [];
      for (const asked of fc.sample(askedWorlds(ASKED), { seed: SEED, numRuns: WORLDS })) {
        const violation = await violationIn(asked, databases, tally);
        if (violation) found.push(described(violation));
        if (violation && process.env['OUT'])
          appendFileSync(process.env['OUT'], described(violation) + '\n\n');
      }
      if (process.env['TALLY'])
        console.log(
          [...tally]
            .sort()
            .map((e) => e.join(': '))
            .join('; '),
        );
      expect(found.join('\n\n')).toBe('');
      const silent = ['query_class ok', 'aggregate ok', 'group_by ok', 'export_data ok'];
      expect(silent.filter((kind) => !tally.has(kind))).toEqual([]);
    },
  );
});
