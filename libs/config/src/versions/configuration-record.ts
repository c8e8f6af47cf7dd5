import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { isJsonObject } from '#core';
import type { ConfigurationEvent } from '#audit';
import { type ConfigIssue, describeIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import type { ConfigVersion } from './config-versions.js';

/** Where a configuration came from. */
export interface ConfigurationOrigin {
  /** At the start, because its file changed, or because somebody asked for it. */
  readonly by: ConfigurationEvent['by'];
  /** SHA-256 of the file; null: there is none. */
  readonly digest: string | null;
}

/** Maximum number of paths or issues in one record. */
const MAX_LISTED = 100;
/** Maximum characters of a policy, and of agents, in a record. */
const MAX_RECORDED_LENGTH = 262_144;

/** Record of a configuration that is in force from now on (docs/operations/audit.md). */
export function recordAdopted(
  now: ConfigVersion,
  before: ConfigVersion | null,
  came: ConfigurationOrigin,
): ConfigurationEvent {
  const changed = before && listChangedPaths(before.config, now.config);
  const isOther =
    before?.policy.version !== now.policy.version ||
    !isDeepStrictEqual(before.config.agents, now.config.agents);
  return {
    ...beginRecord(now, came),
    success: true,
    ...(before && { previous_policy_version: before.policy.version }),
    ...(changed && { changed: cutList(changed) }),
    ...(isOther && describeGoverned(now.config)),
  };
}

/** Record of a configuration that was read and is refused: `now` stays in force. */
export function recordRefused(
  now: ConfigVersion,
  issues: readonly ConfigIssue[],
  came: ConfigurationOrigin,
): ConfigurationEvent {
  return { ...beginRecord(now, came), success: false, issues: cutList(issues.map(describeIssue)) };
}

function beginRecord({ number, policy }: ConfigVersion, { by, digest }: ConfigurationOrigin) {
  return {
    type: 'configuration' as const,
    at: new Date().toISOString(),
    by,
    configuration_version: number,
    policy_version: policy.version,
    ...(digest !== null && { file_digest: digest }),
  };
}

function cutList(list: readonly string[]): readonly string[] {
  return list.length <= MAX_LISTED
    ? list
    : [...list.slice(0, MAX_LISTED), `… ${list.length - MAX_LISTED} more`];
}

const nameFunctions = (_: string, value: unknown) => (typeof value === 'function' ? '(a function)' : value);

type Governed = Pick<ParleyConfig, 'agents' | 'policy'>;

/** The agents and the policy as they are configured, as JSON: functions of the application are named as such, and secrets are left out. */
function showGoverned({ agents, policy }: Governed): Governed {
  const { maskingKey: _key, ...shown } = policy as Readonly<Record<string, unknown>>;
  const own = Object.entries(agents).map(([name, { llm: _llm, ...agent }]) => [name, agent]);
  return JSON.parse(
    JSON.stringify({ agents: Object.fromEntries(own), policy: shown }, nameFunctions),
  ) as Governed;
}

/** The agents and the policy that are served, as YAML that can be read again: without the key of masks and language models. */
export const writeEffective = (config: Governed): string => stringify(showGoverned(config));

function describeGoverned(config: Governed): Pick<ConfigurationEvent, 'policy' | 'agents'> {
  const { policy, agents } = showGoverned(config);
  return { policy: cutLong(policy), agents: cutLong(agents) };
}

function cutLong(options: object): object | string {
  const { length } = JSON.stringify(options);
  return length > MAX_RECORDED_LENGTH ? `… ${length} characters` : options;
}

/** The agents and the policy of a record, as YAML; null: it does not hold them, or they are those of this configuration. */
export function readOtherThan(
  config: Governed,
  { agents, policy }: Pick<ConfigurationEvent, 'policy' | 'agents'>,
): string | null {
  if (!isJsonObject(agents) || !isJsonObject(policy)) return null;
  return isDeepStrictEqual({ agents, policy }, showGoverned(config)) ? null : stringify({ agents, policy });
}

/** What differs, as deep as `policy.classes.Order.fields`: names alone, because values may be secret. */
function listChangedPaths(before: ParleyConfig, now: ParleyConfig): readonly string[] {
  const walk = (one: unknown, other: unknown, path: readonly string[]): readonly string[] => {
    if (isDeepStrictEqual(one, other)) return [];
    if (path.length === 4 || !isJsonObject(one) || !isJsonObject(other)) return [path.join('.')];
    const names = new Set([...Object.keys(one), ...Object.keys(other)]);
    return [...names].flatMap((name) => walk(one[name], other[name], [...path, name]));
  };
  return walk(before, now, []);
}
