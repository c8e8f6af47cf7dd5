import { isDeepStrictEqual } from 'node:util';
import type { Agent } from '#core';
import type { AuthRuleConfig } from '../sections/auth.js';
import type { ParleyConfig } from '../config.js';
import type { ConfigIssue } from '../config-error.js';
import type { VersionChange } from './config-versions.js';

export const NEEDS_RESTART = 'has changed, which needs a restart';

/** What a new version of the configuration brings along; everything else was built when the process started. */
const RELOADED: ReadonlySet<string> = new Set<keyof ParleyConfig>(['policy', 'agents', 'auth']);

type Section = Readonly<Record<string, unknown>>;

const isSection = (value: unknown): value is Section =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

const admitsAnonymous = (rules: readonly AuthRuleConfig[]) => rules.some((rule) => 'anonymous' in rule);

/** The options that differ and that a running service cannot take over. Their values are not told: some are secrets. */
export function needingRestart(running: ParleyConfig, read: ParleyConfig): ConfigIssue[] {
  const issues = changed({ ...running }, { ...read }, '').filter(({ path }) => !RELOADED.has(root(path)));
  // Whether browsers of this machine are let in was decided by it.
  if (admitsAnonymous(running.auth) !== admitsAnonymous(read.auth))
    issues.push({ path: 'auth', message: `whether there is an anonymous rule ${NEEDS_RESTART}` });
  return issues;
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

/**
 * The agents whose streams a new version of the configuration ends: those whose declaration, or the rules of
 * authentication, changed. Their clients reconnect and are authenticated again. A change of the policy ends no stream,
 * because rights are checked at each request.
 */
export function mustReturn({ before, now }: VersionChange): (agent: Agent) => boolean {
  if (!isDeepStrictEqual(before.config.auth, now.config.auth)) return () => true;
  const changed = new Set(
    Object.keys(before.config.agents).filter(
      (name) => !isDeepStrictEqual(before.config.agents[name], now.config.agents[name]),
    ),
  );
  return ({ definition }) => changed.has(definition.name);
}
