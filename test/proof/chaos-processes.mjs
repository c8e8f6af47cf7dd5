// The same chaos for one service of several processes, which starts by itself those that end.
import { chaos } from './chaos.mjs';

export const part = {
  title: 'One service of three processes, one killed every five seconds',
  minutes: 3,
  brief: 0.1,
};

export const run = (options) => chaos(options, { processes: 3 });
