import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '#embedded-mongo';
import { type AskedWorld, askedWorlds } from './properties/asked-of-world.js';
import { described, type Services, type Tally, violationIn } from './properties/compare-worlds.js';
import { openService } from './properties/service-in-process.js';
import { openHttpService } from './properties/service-over-http.js';

/** `npm run properties` asks in hundreds of worlds, and names a seed to repeat. */
const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const ASKED = 40;
const MINUTE = 60_000;

let embedded: EmbeddedMongo;
let made = 0;
beforeAll(async () => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  embedded = await EmbeddedMongo.start();
});
afterAll(async () => {
  vi.restoreAllMocks();
  Logger.overrideLogger(false);
  await embedded?.close();
});

async function violationsIn(asked: readonly AskedWorld[], open: Services['open']) {
  const tally: Tally = new Map();
  const services = { uri: embedded.uri, next: () => `world${(made += 1)}`, open };
  const found: string[] = [];
  for (const one of asked) {
    const violation = await violationIn(one, services, tally);
    if (violation) found.push(described(violation));
  }
  const lines = [...tally].map((entry) => entry.join(': ')).sort((left, right) => (left < right ? -1 : 1));
  if (process.env['PROPERTY_TALLY']) console.log(lines.join('\n'));
  return { found: found.join('\n\n'), tally };
}

describe(`what an agent may not see, in ${WORLDS} random worlds (seed ${SEED})`, () => {
  it(
    'changes no byte of an answer or an audit record, and stands in none',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const asked = fc.sample(askedWorlds(ASKED), { seed: SEED, numRuns: WORLDS });
      const { found, tally } = await violationsIn(asked, openService);
      expect(found).toBe('');
      // Where everything is refused nothing could show.
      const silent = ['query_class ok', 'aggregate ok', 'group_by ok', 'export_data ok'];
      expect(silent.filter((kind) => !tally.has(kind))).toEqual([]);
    },
  );

  it('does neither over HTTP', { timeout: MINUTE + WORLDS * 10_000 }, async () => {
    const asked = fc.sample(askedWorlds(ASKED), {
      seed: SEED + 1,
      numRuns: Math.max(2, Math.ceil(WORLDS / 6)),
    });
    const alone = asked.map(({ world, ...rest }) => ({
      ...rest,
      world: { ...world, agent: { ...world.agent, child: null } },
    }));
    const { found, tally } = await violationsIn(alone, openHttpService);
    expect(found).toBe('');
    expect([...tally.keys()].filter((kind) => kind.endsWith(' ok')).length).toBeGreaterThan(0);
  });
});
