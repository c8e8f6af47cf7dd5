// `npm run bench`: builds, then measures every target in one run and prints a table; figures also go to bench-results.json.
// `npm run bench -- --only TEXT` makes only some of its rows, `-- --soak MINUTES` watches memory for longer than half a minute.
// `npm run bench -- --quick` compares the ratios with those recorded last, and fails when they fell.
// `npm run bench -- exports [rows]` measures one large export instead, `-- observed` what metrics and traces cost, `-- audit` what
// recording calls costs, `-- auth` what it costs to know who is calling, `-- console` the operators' page,
// `-- masks` what masks cost, `-- peers` other MCP servers on the same database, `-- soak [minutes]` memory over time,
// `-- growth` how a call grows with classes, agents, rules, columns, rows and sessions,
// `-- changes` what proposed and recorded writes cost against others,
// `-- cancel` how soon a cancelled operation ends, `-- lists` the listing of 24 and of 240 tools, `-- capacity` what each kind of
// request costs the service, Redis and the database.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { build } from './build/build.mjs';

const given = process.argv.slice(2);
const [first, ...others] = given;
const APART =
  'exports observed audit auth console masks peers soak cancel capacity changes lists growth'.split(' ');
const apart = APART.includes(first);
const quick = first === '--quick';
const isKnown = first === undefined || apart || quick || /^--(soak|only)(=|$)/.test(first);
const asksForHelp = given.some((one) => one === '--help' || one === '-h');
if (asksForHelp || !isKnown) {
  const [head] = readFileSync(new URL(import.meta.url), 'utf8').split('\nimport ');
  const usage = head.replace(/^\/\/ /gm, '');
  if (asksForHelp) console.log(usage);
  else console.error(`unknown '${first}'\n${usage}`);
  process.exit(asksForHelp ? 0 : 2);
}
const status = build({ ifNeeded: true });
if (status !== 0) process.exit(status);
const [script, args] = apart ? [first, others] : quick ? ['quick', others] : ['run', given];
try {
  // What is measured goes before other work of the machine, where the system permits it: what interrupts it clears its caches.
  setPriority(-10);
} catch {
  // An ordinary user may not.
}
const run = fileURLToPath(new URL(`../test/bench/${script}.mjs`, import.meta.url));
process.exit(spawnSync(process.execPath, [run, ...args], { stdio: 'inherit' }).status ?? 1);
