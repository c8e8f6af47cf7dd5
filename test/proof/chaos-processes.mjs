// The same chaos for one service of several processes, which starts by itself those that end.
import { chaos } from './chaos.mjs';

/** Not brief: starts and ends take longer than seconds of load, and `chaos` tries the same code. */
export const part = {
  title: 'One service of three processes, one killed every five seconds',
  minutes: 3,
  brief: 0,
};

export const run = (options) => chaos(options, { processes: 3 });
