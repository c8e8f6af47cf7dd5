import type { ConfigIssue } from './config-error.js';
import { type ConfigFile, readYaml } from './read-config-file.js';
import { isJsonObject, type JsonObject } from '#core';

/** Sections of a text that somebody tries. All others are those that are served: they say where data is, and hold secrets. */
const TRIED_SECTIONS: readonly string[] = ['agents', 'policy'];
/** Agents of a text that somebody tries: each is compared class by class. */
const MOST_AGENTS = 200;

/**
 * What the file would be with the agents and the policy of another text. Neither variables nor files are looked up for that text,
 * because an operator of the console may not read them; `maskingKey` stays.
 */
export function withTriedSections(file: ConfigFile, text: string): ConfigFile {
  const tried = readYaml(text, 'tried');
  const errors = [...tried.errors];
  const served = isJsonObject(file.value) ? file.value : {};
  if (errors.length === 0 && !isJsonObject(tried.value))
    errors.push({ path: '', at: 'tried', message: 'must be an object with agents and policy' });
  const given: JsonObject = isJsonObject(tried.value) ? tried.value : {};
  if (errors.length === 0 && !TRIED_SECTIONS.some((name) => name in given))
    errors.push({ path: '', at: 'tried', message: 'has neither agents nor policy: nothing is tried' });
  const value: Record<string, unknown> = { ...served };
  for (const name of TRIED_SECTIONS) if (name in given) value[name] = given[name];
  const { policy, agents } = value;
  if ('policy' in given && isJsonObject(policy)) value['policy'] = withServedKey(policy, served['policy']);
  if (isJsonObject(agents) && Object.keys(agents).length > MOST_AGENTS)
    errors.push({ path: 'agents', message: `holds more than ${MOST_AGENTS} agents` });
  for (const name of TRIED_SECTIONS) if (name in given) errors.push(...listReferences(value[name], name));
  const isTried = ({ path }: ConfigIssue) =>
    TRIED_SECTIONS.some((name) => name in given && path.split('.')[0] === name);
  return {
    value,
    errors: [...file.errors.filter((issue) => !isTried(issue)), ...errors.map(tried.locate)],
    locate: (issue) => (isTried(issue) ? tried.locate(issue) : file.locate(issue)),
  };
}

function withServedKey({ maskingKey: _key, ...policy }: JsonObject, served: unknown): JsonObject {
  const key = isJsonObject(served) ? served['maskingKey'] : undefined;
  return key === undefined ? policy : { ...policy, maskingKey: key };
}

/**
 * What the file would be with the agents and the policy that an earlier start recorded: rules that lead to agents which there
 * were not then go, and so do those who decide and operate.
 */
export function withRecordedSections(file: ConfigFile, text: string): ConfigFile {
  const tried = withTriedSections(file, text);
  const { console: _console, approvals: _approvals, auth, ...value } = tried.value as JsonObject;
  const { agents } = value;
  const isKnown = (rule: unknown) =>
    isJsonObject(rule) && isJsonObject(agents) && Object.hasOwn(agents, String(rule['agent']));
  const known = Array.isArray(auth) ? auth.filter(isKnown) : [];
  return { ...tried, value: known.length === 0 ? value : { ...value, auth: known } };
}

/** Texts that name a variable or a file. What the file itself names was looked up already. */
function listReferences(value: unknown, path: string): ConfigIssue[] {
  if (typeof value === 'string')
    return value.includes('${') && path !== 'policy.maskingKey'
      ? [
          {
            path,
            message: 'names a variable or a file, which is not looked up for what is tried: write the value',
          },
        ]
      : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, below]) => listReferences(below, `${path}.${name}`));
}
