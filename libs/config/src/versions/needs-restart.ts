import { isDeepStrictEqual } from 'node:util';
import type { AuthRuleConfig } from '../sections/auth.js';
import type { ParleyConfig } from '../config.js';
import type { ConfigIssue } from '../config-error.js';

export const NEEDS_RESTART = 'has changed, which needs a restart';

/** What a new version of the configuration brings along; everything else was built when the process started. */
const RELOADED: ReadonlySet<string> = new Set<keyof ParleyConfig>(['policy', 'agents', 'auth']);

type Section = Readonly<Record<string, unknown>>;

const isSection = (value: unknown): value is Section =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

const admitsAnonymous = (rules: readonly AuthRuleConfig[]) => rules.some((rule) => 'anonymous' in rule);

/** The options that differ and that a running service cannot take over. Their values are not told: some are secrets. */
export function needingRestart(running: ParleyConfig, read: ParleyConfig): ConfigIssue[] {
  const faults = changed({ ...running }, { ...read }, '').filter(({ path }) => !RELOADED.has(root(path)));
  // Whether browsers of this machine are let in was decided by it.
  if (admitsAnonymous(running.auth) !== admitsAnonymous(read.auth))
    faults.push({ path: 'auth', message: `whether there is an anonymous rule ${NEEDS_RESTART}` });
  return faults;
}

const root = (path: string) => path.split('.', 1)[0] as string;

/** Down to the second level, which is where options are. */
function changed(before: Section, after: Section, prefix: string): ConfigIssue[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const [one, other] = [before[name], after[name]];
    if (isDeepStrictEqual(one, other)) return [];
    const path = `${prefix}${name}`;
    return prefix === '' && isSection(one) && isSection(other)
      ? changed(one, other, `${path}.`)
      : [{ path, message: NEEDS_RESTART }];
  });
}
