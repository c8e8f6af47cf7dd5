import { invalidPattern } from './regex-reader.js';

/** Options in force at some place of a pattern. */
export interface Modes {
  readonly fold: boolean;
  readonly multiline: boolean;
  readonly dotAll: boolean;
  readonly extended: boolean;
}

/** The options a whole pattern starts with, from letters such as "im". */
export const readModes = (options: string): Modes => ({
  fold: options.includes('i'),
  multiline: options.includes('m'),
  dotAll: options.includes('s'),
  extended: options.includes('x'),
});

/** Reads `i-x` of `(?i-x)`. `m` is a flag of the whole pattern, so it may only lead. Errors: 51091. */
export function changeModes(modes: Modes, flags: string, leading: boolean): Modes {
  const [on = '', off = ''] = flags.split('-');
  if (!/^[imsx]*$/.test(on + off)) throw invalidPattern(`unsupported inline option (?${flags})`);
  if (!leading && (on + off).includes('m'))
    throw invalidPattern('(?m) is supported at the start of a pattern only');
  const read = (flag: string, before: boolean): boolean =>
    on.includes(flag) || (before && !off.includes(flag));
  return {
    fold: read('i', modes.fold),
    multiline: read('m', modes.multiline),
    dotAll: read('s', modes.dotAll),
    extended: read('x', modes.extended),
  };
}
