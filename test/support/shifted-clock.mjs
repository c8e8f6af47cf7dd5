// Loaded before the service (`node --import`): the clock of a machine that is wrong. `Date` and the start of the process are shifted
// by CLOCK_AHEAD milliseconds; SIGUSR2 sets the clock to the first number in the file CLOCK_FILE, as an operator or NTP would. The
// second number is time that passes for every clock, monotonic ones included. Timers are not changed.
import { readFileSync } from 'node:fs';

const { CLOCK_AHEAD = '0', CLOCK_FILE } = process.env;
const Machine = Date;
const now = Machine.now.bind(Machine);
const elapsed = performance.now.bind(performance);
let ahead = Number(CLOCK_AHEAD);
let passed = 0;

const Shifted = new Proxy(Machine, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Machine.now()] : args, newTarget),
  apply: () => new Machine(Machine.now()).toString(),
});
Machine.now = () => now() + ahead + passed;
performance.now = () => elapsed() + passed;
Machine.prototype.constructor = Shifted;
globalThis.Date = Shifted;

const { timeOrigin } = performance;
Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + ahead });

if (CLOCK_FILE !== undefined)
  process.on('SIGUSR2', () => {
    [ahead, passed] = readFileSync(CLOCK_FILE, 'utf8').split(' ').map(Number);
    process.stderr.write(`the clock is set to ${ahead} ms\n`);
  });
