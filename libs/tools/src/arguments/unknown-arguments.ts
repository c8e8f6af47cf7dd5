import { Refused, refusals } from '#core';
import { suggestNames } from '#policy';
import { declaredNames } from '../json-schema.js';
import { isClassReader } from '../declaration/class-schema.js';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import { undeclaredNames } from './argument-class.js';

/** Identity names are never arguments: they are ignored in every spelling. */
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

/** Maximum length of a name that a refusal repeats. */
const MAX_NAME = 128;

function isIdentity(name: string): boolean {
  const letters = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  return IDENTITY.has(letters) || IDENTITY.has(letters.replace(/^xparse/, ''));
}

/**
 * Refuses arguments that a built-in tool does not have: an ignored typing error would change the meaning of the call.
 * @returns throws Refused `invalid_argument` with the nearest name and all valid names
 */
export function unknownArguments({
  definition: { name: tool, inputSchema },
  input,
}: Pick<ToolRegistration, 'definition' | 'input'>): (args: unknown) => void {
  const declared = declaredNames(inputSchema);
  const others = input && isClassReader(input) ? undeclaredNames(input.type) : [];
  const taken = new Set([...declared, ...others]);
  return (args) => {
    if (args === null || typeof args !== 'object') return;
    const unknown = Object.keys(args).find((name) => !taken.has(name) && !isIdentity(name));
    if (unknown === undefined) return;
    const written = unknown.slice(0, MAX_NAME);
    throw new Refused(refusals.unknownArgument(tool, written, suggestNames(written, declared), declared));
  };
}
