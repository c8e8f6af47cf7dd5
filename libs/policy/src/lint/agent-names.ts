import { type AgentShape, canonicalClassName, DEFAULT_FILTER, isParseClassName } from '#agent';
import type { Policy } from '../model/class-policy.js';
import { suggestNames } from '../scope/suggest-names.js';

/** The names that there are; null where nobody can say now. */
export interface KnownNames {
  readonly tools: ReadonlySet<string> | null;
  readonly classes: ReadonlySet<string> | null;
}

/** A name in the limits of an agent that nothing has: as good as certainly misspelt. */
export interface UnknownName {
  readonly agent: string;
  /** Where it stands among the agent's options, such as `tools` or `filters.Psot`. */
  readonly path: string;
  readonly option: 'tools' | 'classes' | 'filters';
  readonly message: string;
  readonly accepted: readonly string[];
  /** An error, where the agent or the policy is strict about that option; otherwise worth a warning. */
  readonly strict: boolean;
}

/** Names shown where none is near. */
const MOST_SHOWN = 40;

/** What is not there, and what was meant or could be. */
function nothingNamed(what: string, name: string, known: readonly string[]): string {
  const [nearest] = suggestNames(name, known);
  if (nearest !== undefined) return `${what} '${name}'; did you mean '${nearest}'?`;
  const names = [...known].sort();
  const more = names.length > MOST_SHOWN ? ', …' : '';
  return `${what} '${name}'${names.length === 0 ? '' : `; there are: ${names.slice(0, MOST_SHOWN).join(', ')}${more}`}`;
}

/**
 * Names in `tools`, `classes.only` and `filters` that nothing has. A class that the policy declares is known before the
 * database has it, and so are Parse's own. They are kept, because a tool or class of that name may come later: a filter under
 * such a name limits that class as soon as there is one.
 */
export function unknownAgentNames(shape: AgentShape, policy: Policy, known: KnownNames): UnknownName[] {
  const { name: agent } = shape;
  const strictTools = shape.strictToolFilter ?? policy.switches.strictToolFilter;
  const strictClasses = shape.strictClassFilter ?? policy.switches.strictClassFilter;
  const { tools } = known;
  const classes = known.classes && new Set([...known.classes, ...policy.classes.keys()]);
  const isUnknown = (name: string) =>
    classes !== null && !classes.has(canonicalClassName(name)) && !isParseClassName(name);
  const written = new Set([...(shape.tools.only ?? []), ...(shape.tools.except ?? [])]);
  const of = (
    option: UnknownName['option'],
    path: string,
    message: string,
    names: ReadonlySet<string> | null,
  ) => ({
    agent,
    option,
    path,
    message,
    accepted: [...(names ?? [])].sort(),
    strict: option === 'tools' ? strictTools : strictClasses,
  });
  const noClass = (name: string) => nothingNamed('the database has no class', name, [...(classes ?? [])]);
  return [
    ...[...written]
      .filter((name) => tools !== null && !tools.has(name))
      .map((name) => of('tools', 'tools', nothingNamed('no tool is named', name, [...(tools ?? [])]), tools)),
    ...[...(shape.classes.only ?? [])]
      .filter(isUnknown)
      .map((name) => of('classes', 'classes', noClass(name), classes)),
    ...[...shape.filters.keys()]
      .filter((name) => name !== DEFAULT_FILTER && isUnknown(name))
      .map((name) => of('filters', `filters.${name}`, `limits nothing: ${noClass(name)}`, classes)),
  ];
}
