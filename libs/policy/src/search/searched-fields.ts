import { Refused, refusals } from '#agent';
import { type ClassAccess, withheldTarget } from '../model/class-access.js';
import type { FieldType } from '../model/class-schema.js';
import { rootOf } from '../model/field-names.js';
import { isInternalField } from '../model/internal-fields.js';
import { mayHoldWithheld } from '../redaction/withheld-inside.js';
import { resolveFieldPath } from '../where/field-path.js';

const TEXT: ReadonlySet<FieldType> = new Set(['String', 'Array', 'Object']);
/** What a search looks through when it is not told where. Objects hold anything, so they are searched by name alone. */
const SEARCHED: ReadonlySet<FieldType> = new Set(['String', 'Array']);
const COUNTED: ReadonlySet<FieldType> = new Set(['String', 'Array', 'Object', 'Number', 'Date', 'Boolean']);

/**
 * Every column with text that the agent may read. A wildcard would reach further: into internal columns, hidden ones and
 * ids of withheld classes.
 * @throws Refused `invalid_argument` when there is none
 */
export function allTextFields(access: ClassAccess): readonly string[] {
  return textFields(access, () => true);
}

/** Those of them where nothing of a withheld class can be found: for counts, which no row limits. */
export function countedTextFields(access: ClassAccess): readonly string[] {
  return textFields(access, (name) => !mayHoldWithheld(name, access));
}

function textFields(access: ClassAccess, isMeant: (name: string) => boolean): readonly string[] {
  const names = [...(access.schema?.fields ?? [])]
    .filter(([name, { type }]) => SEARCHED.has(type) && isOpen(name, access) && isMeant(name))
    .map(([name]) => name);
  if (names.length === 0)
    throw new Refused(
      refusals.invalidArgument(`class '${access.className}' has no text that could be searched`),
    );
  return names;
}

/** The columns of type String among them: whole texts. */
export function stringFields(access: ClassAccess): readonly string[] {
  return [...(access.schema?.fields ?? [])]
    .filter(([name, { type }]) => type === 'String' && isOpen(name, access))
    .map(([name]) => name);
}

/** A field to search in, in any spelling, as its wire path. @throws Refused */
export function searchedField(written: string, access: ClassAccess, argument: string): string {
  return judged(written, access, argument, TEXT, 'holds no text');
}

/** A field to count by. @throws Refused */
export function facetField(written: string, access: ClassAccess, argument: string): string {
  const path = judged(written, access, argument, COUNTED, 'cannot be counted by');
  if (!mayHoldWithheld(path, access)) return path;
  // Counts are made by the search itself, where nothing can stand for an object.
  throw new Refused(
    refusals.invalidArgument(
      `${argument}: '${written.slice(0, 128)}' may hold objects of classes that are not yours: count it by group_by`,
    ),
  );
}

function judged(
  written: string,
  access: ClassAccess,
  argument: string,
  types: ReadonlySet<FieldType>,
  fault: string,
): string {
  const path = resolveFieldPath(written, access, argument);
  const withheld = withheldTarget(path, access);
  if (withheld) throw new Refused(withheld.refusal);
  const type = access.schema?.fields.get(rootOf(path))?.type;
  const told = written.slice(0, 128);
  if (type === undefined)
    throw new Refused(refusals.invalidArgument(`${argument}: there is no field '${told}'`));
  if (!types.has(type)) throw new Refused(refusals.invalidArgument(`${argument}: '${told}' ${fault}`));
  return path;
}

function isOpen(name: string, access: ClassAccess): boolean {
  return (
    name !== 'objectId' &&
    !isInternalField(name) &&
    (access.readable?.has(name) ?? true) &&
    !withheldTarget(name, access)
  );
}
