import { Refused, refusals } from '#agent';
import { suggestNames } from '#policy';
import { declaredNames } from '../json-schema.js';
import type { ToolDefinition } from '../tool.js';

/** Who is calling is never an argument: these are dropped, in every spelling, as if nobody had written them. */
const IDENTITY = new Set([
  'sessiontoken',
  'master',
  'masterkey',
  'usemaster',
  'usemasterkey',
  'acluser',
  'aclrole',
  'aclscope',
  'tenantid',
]);

/** Understood beside the declared names: the reference takes them. */
const ALSO_TAKEN: Readonly<Record<string, readonly string[]>> = {
  aggregate: ['rewrite_lookups', 'mongo_direct'],
  semantic_search: ['class', 'klass', 'size', 'overlap', 'by'],
  create_object: ['data'],
  update_object: ['data'],
};

/** Longest name that a refusal repeats. */
const MAX_NAME = 128;

function isIdentity(name: string): boolean {
  const letters = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  return IDENTITY.has(letters) || IDENTITY.has(letters.replace(/^xparse/, ''));
}

/**
 * Refuses what a tool of Parley does not take: an argument that nobody reads turns a slip of the pen into another question.
 * @returns throws Refused `invalid_argument` with the nearest name and all that are taken
 */
export function declaredArguments({
  name: tool,
  inputSchema,
}: Pick<ToolDefinition, 'name' | 'inputSchema'>): (args: unknown) => void {
  const declared = declaredNames(inputSchema);
  const taken = new Set([...declared, ...(ALSO_TAKEN[tool] ?? [])]);
  return (args) => {
    if (args === null || typeof args !== 'object') return;
    const unknown = Object.keys(args).find((name) => !taken.has(name) && !isIdentity(name));
    if (unknown === undefined) return;
    const written = unknown.slice(0, MAX_NAME);
    throw new Refused(refusals.unknownArgument(tool, written, suggestNames(written, declared), declared));
  };
}
