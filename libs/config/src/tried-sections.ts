import type { ConfigIssue } from './config-error.js';
import { type ConfigFile, readYaml } from './read-config-file.js';
import { isSection, type Section } from './section.js';

/** Sections of a text that somebody tries. All others are those that are served: they say where data is, and hold secrets. */
const TRIED_SECTIONS: readonly string[] = ['agents', 'policy'];
/** Agents of a text that somebody tries: each is compared class by class. */
const MOST_AGENTS = 200;

/**
 * What the file would be with the agents and the policy of another text. Nothing is looked up for that text, neither a
 * variable nor a file, because whoever tries it may not read them; the key of masks stays.
 */
export function withTriedSections(file: ConfigFile, text: string): ConfigFile {
  const tried = readYaml(text, 'tried');
  const errors = [...tried.errors];
  const served = isSection(file.value) ? file.value : {};
  if (errors.length === 0 && !isSection(tried.value))
    errors.push({ path: '', at: 'tried', message: 'must be an object with agents and policy' });
  const given: Section = isSection(tried.value) ? tried.value : {};
  if (errors.length === 0 && !TRIED_SECTIONS.some((name) => name in given))
    errors.push({ path: '', at: 'tried', message: 'has neither agents nor policy: nothing is tried' });
  const value: Section = { ...served };
  for (const name of TRIED_SECTIONS) if (name in given) value[name] = given[name];
  const { policy, agents } = value;
  if ('policy' in given && isSection(policy)) value['policy'] = withServedKey(policy, served['policy']);
  if (isSection(agents) && Object.keys(agents).length > MOST_AGENTS)
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

function withServedKey({ maskingKey: _key, ...policy }: Section, served: unknown): Section {
  const key = isSection(served) ? served['maskingKey'] : undefined;
  return key === undefined ? policy : { ...policy, maskingKey: key };
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
