import { isDeepStrictEqual } from 'node:util';
import type { ConfigurationEvent } from '#audit';
import type { ConfigIssue } from '../config-error.js';
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
/** Maximum characters of a policy in a record. */
const MAX_POLICY_LENGTH = 262_144;
const SECRET = '***';

/** Record of a configuration that is in force from now on (docs/operations/audit.md). */
export function recordAdopted(
  now: ConfigVersion,
  before: ConfigVersion | null,
  came: ConfigurationOrigin,
): ConfigurationEvent {
  const changed = before && listChangedPaths(before.config, now.config);
  const hasNewPolicy = before?.policy.version !== now.policy.version;
  return {
    ...beginRecord(now, came),
    success: true,
    ...(before && { previous_policy_version: before.policy.version }),
    ...(changed && { changed: cutList(changed) }),
    ...(hasNewPolicy && describePolicy(now.config.policy)),
  };
}

/** Record of a configuration that was read and is refused: `now` stays in force. */
export function recordRefused(
  now: ConfigVersion,
  issues: readonly ConfigIssue[],
  came: ConfigurationOrigin,
): ConfigurationEvent {
  const lines = issues.map(({ path, message }) => `${path || '(file)'}: ${message}`);
  return { ...beginRecord(now, came), success: false, issues: cutList(lines) };
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

/** As it is configured, with defaults: functions of the application are named as such, and its secret is masked. */
function describePolicy(policy: object): Pick<ConfigurationEvent, 'policy'> {
  const text = JSON.stringify(policy, (key, value: unknown) => {
    if (key === 'maskingKey' && value !== null) return SECRET;
    return typeof value === 'function' ? '(a function)' : value;
  });
  return text.length > MAX_POLICY_LENGTH
    ? { policy: `… ${text.length} characters` }
    : { policy: JSON.parse(text) as object };
}

/** What differs, as deep as `policy.classes.Order.fields`: names alone, because values may be secret. */
function listChangedPaths(before: ParleyConfig, now: ParleyConfig): readonly string[] {
  const walk = (one: unknown, other: unknown, path: readonly string[]): readonly string[] => {
    if (isDeepStrictEqual(one, other)) return [];
    if (path.length === 4 || !isObject(one) || !isObject(other)) return [path.join('.')];
    const names = new Set([...Object.keys(one), ...Object.keys(other)]);
    return [...names].flatMap((name) => walk(one[name], other[name], [...path, name]));
  };
  return walk(before, now, []);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
