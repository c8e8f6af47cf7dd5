import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EmbeddedMongo } from '#embedded-mongo';
import { requests } from './properties/requests.js';
import { type Answer, openService, type Request } from './properties/service-in-process.js';
import { type World, worlds } from './properties/world.js';
import { worldsApart } from './properties/worlds-apart.js';

/** `npm run properties` asks thousands, and names a seed to repeat. */
const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 40);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const ASKED = Number(process.env['PROPERTY_REQUESTS'] ?? 40);

let embedded: EmbeddedMongo;
let opened = 0;
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
});
afterAll(() => embedded?.close());

const nextDatabase = () => ({ uri: embedded.uri, name: `world${(opened += 1)}` });

/** Without quoting, and without what stands for an object of a withheld class: its name and nothing else. */
const unquoted = (text: string) =>
  text
    .replaceAll(/\\+n/g, '')
    .replaceAll(/[\\"\s]/g, '')
    .replaceAll(/className:\w+,__redacted:true/g, '');

/** Bytes of the answer that hold what may not show and what the request did not say itself. */
function shown(traces: readonly string[], request: Request, { reply, audit }: Answer): string[] {
  const asked = JSON.stringify(request);
  const told = unquoted(reply);
  return traces.filter(
    (trace) =>
      !asked.includes(trace) && (told.includes(trace) || (audit.includes(trace) && /ZEKRET/.test(trace))),
  );
}

const isMade = ({ params }: Request) => JSON.stringify(params).includes('$sample');
const T = { open: 0, ask: 0 };
const tally = new Map<string, number>();
const violations: string[] = [];

describe(`what an agent may not see, over random worlds and requests (seed ${SEED})`, () => {
  it(
    'changes no byte of an answer or audit record, and shows in none',
    { timeout: 60_000 + WORLDS * 3000 },
    async () => {
      const property = fc.asyncProperty(
        worlds,
        fc.array(requests, { minLength: ASKED, maxLength: ASKED }),
        async (world, asked) => {
          const apart = worldsApart(world);
          const t0 = performance.now();
          const left = await openService(world, apart.marked, nextDatabase());
          const right = await openService(world, apart.ordinary, nextDatabase());
          T.open += performance.now() - t0;
          const t1 = performance.now();
          try {
            for (const request of asked) {
              const [one, other] = await Promise.all([left.ask(request), right.ask(request)]);
              count(request, one);
              const shows = shown(apart.traces, request, one);
              const differs = !isMade(request) && (one.reply !== other.reply || one.audit !== other.audit);
              if (shows.length > 0 || differs) {
                violations.push(report(world, request, shows, one, other));
                if (differs) break;
              }
            }
          } finally {
            T.ask += performance.now() - t1;
            await left.close();
            await right.close();
          }
        },
      );
      await fc.assert(property, {
        numRuns: WORLDS,
        seed: SEED,
        endOnFailure: !process.env['PROPERTY_SHRINK'],
      });
      console.log(T);
      if (process.env['TALLY'])
        console.log(
          [...tally]
            .sort()
            .map(([k, n]) => `${k}: ${n}`)
            .join('\n'),
        );
      if (process.env['OUT']) writeFileSync(process.env['OUT'], violations.join('\n\n'));
      expect(violations.length + '\n' + violations.slice(0, 3).join('\n\n')).toBe('0\n');
    },
  );
});

function report(world: World, request: Request, shows: string[], one: Answer, other: Answer) {
  const { agent } = world;
  const asked = JSON.stringify(request);
  const rules = Object.entries(world.classes)
    .filter(([n]) => asked.includes(n) || shows.includes(n))
    .map(([n, r]) => `${n} ${JSON.stringify(r)}`);
  let i = 0;
  while (one.reply[i] === other.reply[i] && i < one.reply.length) i++;
  const from = shows.length ? Math.max(0, one.reply.indexOf(shows[0] ?? '') - 200) : Math.max(0, i - 200);
  return [
    `REQUEST ${asked}`,
    `AGENT ${JSON.stringify(agent)}`,
    ...rules,
    `SHOWS ${shows}`,
    one.reply !== other.reply || shows.length ? `ONE   ${one.reply.slice(from, from + 500)}` : '',
    one.reply !== other.reply ? `OTHER ${other.reply.slice(from, from + 500)}` : '',
    one.audit !== other.audit ? `AUDIT ${one.audit}\n      ${other.audit}` : '',
  ]
    .filter((x) => x)
    .join('\n');
}

function count({ method, params }: Request, { reply }: Answer) {
  const name = method === 'tools/call' ? String(params['name']) : method;
  const code =
    /"parse.error_code":"(\w+)"/.exec(reply)?.[1] ?? (reply.includes('"error"') ? 'rpc error' : 'ok');
  const why =
    process.env['WHY'] === name ? /"text":"(.{0,90})/.exec(reply)?.[1]?.replaceAll(/'[^']*'/g, '') : '';
  const key = `${name} ${code} ${why}`;
  tally.set(key, (tally.get(key) ?? 0) + 1);
}
