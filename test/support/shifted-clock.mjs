// Loaded before the service (`node --import`): the clock of a machine that is wrong. `Date` and the start of the process are shifted
// by CLOCK_AHEAD milliseconds; SIGUSR2 sets the clock to what the file CLOCK_FILE holds, as an operator or NTP would. Monotonic clocks
// and timers are not changed.
import { readFileSync } from 'node:fs';

const { CLOCK_AHEAD = '0', CLOCK_FILE } = process.env;
const Machine = Date;
const now = Machine.now.bind(Machine);
let ahead = Number(CLOCK_AHEAD);

const Shifted = new Proxy(Machine, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now() + ahead] : args, newTarget),
  apply: () => new Machine(now() + ahead).toString(),
});
Machine.now = () => now() + ahead;
Machine.prototype.constructor = Shifted;
globalThis.Date = Shifted;

const { timeOrigin } = performance;
Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + ahead });

if (CLOCK_FILE !== undefined)
  process.on('SIGUSR2', () => {
    ahead = Number(readFileSync(CLOCK_FILE, 'utf8'));
    process.stderr.write(`the clock is set to ${ahead} ms\n`);
  });
