import { cutText, refuse } from '#core';
import { findOtherName, suggestNames } from '#policy';
import { compileReader, type DecoratedClass, type Given, listUndeclaredNames } from '#schema';
import { isClassReader } from '../declaration/class-reader.js';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import { listDeclaredNames } from '../json-schema.js';
import type { ToolCall } from '../tool.js';

/** The unvalidated arguments of a call. */
export type Arguments = Given;

export function refuseArgument(message: string): never {
  throw refuse.invalidArgument(message);
}

/** An argument class of a tool that checks its class before its other arguments: a refusal of the class comes first. */
export interface AdmittingArguments {
  /** @throws Refused when the caller may not use the class */
  readonly admission?: (className: string, call: ToolCall) => Promise<unknown>;
}

/** `static readonly admission` of such a class: the caller must be able to read the class. */
export const admitsClass: AdmittingArguments['admission'] = (className, call) =>
  call.records.admit(className);
/** The same for vector search: the class must be searchable as well. */
export const admitsSearchedClass: AdmittingArguments['admission'] = (className, call) =>
  call.search.likeness(className);

/**
 * Reads the arguments of a call into an instance of the class. Absent arguments count as an empty object.
 * @returns throws Refused `invalid_argument`
 * @throws TypeError for decorators that cannot be compiled
 */
export function argumentReader<T extends object>(type: DecoratedClass<T>): (given: unknown) => T {
  const read = compileReader(type, refuseArgument);
  return (given) => {
    if (given === undefined || given === null) return read({});
    const isObject = typeof given === 'object' && !Array.isArray(given);
    return isObject ? read(given as Given) : refuseArgument('arguments must be an object');
  };
}

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
 * The name for what other libraries call as it was written, or similar names, or else those of two words of which the written one is a word: `id` for `object_id`. A word of a longer name
 * says too little of it: `filter` is no `apply_canonical_filter`.
 */
function meant(written: string, declared: readonly string[]): readonly string[] {
  const other = findOtherName(written, declared);
  if (other !== undefined) return [other];
  const near = suggestNames(written, declared);
  if (near.length > 0) return near;
  const word = written.toLowerCase();
  const isMeant = (words: readonly string[]) => words.length === 2 && words.includes(word);
  return declared.filter((name) => isMeant(name.split('_'))).slice(0, 3);
}

/**
 * Refuses arguments that a built-in tool does not have: an ignored typing error would change the meaning of the call.
 * @returns throws Refused `invalid_argument` with the nearest name and all valid names
 */
export function unknownArguments({
  definition: { name: tool, inputSchema },
  input,
}: Pick<ToolRegistration, 'definition' | 'input'>): (args: unknown) => void {
  const declared = listDeclaredNames(inputSchema);
  const others = input && isClassReader(input) ? listUndeclaredNames(input.type) : [];
  const taken = new Set([...declared, ...others]);
  return (args) => {
    if (args === null || typeof args !== 'object') return;
    const unknown = Object.keys(args).find((name) => !taken.has(name) && !isIdentity(name));
    if (unknown === undefined) return;
    const written = cutText(unknown, MAX_NAME);
    throw refuse.unknownArgument(tool, written, meant(written, declared), declared);
  };
}
