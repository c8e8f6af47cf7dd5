import { refuse } from '#core';
import type { ParseRow } from '../record-store.js';

type Operation = Readonly<Record<string, unknown>> & { readonly __op: string };

const isOperation = (value: unknown): value is Operation =>
  typeof value === 'object' && value !== null && typeof (value as { __op?: unknown }).__op === 'string';

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

/** Values are JSON, so equal text means equal values. */
const textOf = (value: unknown): string => JSON.stringify(value);

const withoutRepeats = (values: readonly unknown[]): readonly unknown[] => [
  ...new Map(values.map((one) => [textOf(one), one])).values(),
];

/** A text that a database may keep as a number, a time or an id, of which there are other texts. */
const CONVERTED_TEXT = /^[-+]?(?:\.?\d|inf|nan)|^[\da-f-]{24,36}$/i;

/** Whether the database takes values for equal exactly where their texts are. */
const areComparable = (values: readonly unknown[]): boolean =>
  values.every((value) =>
    typeof value === 'string'
      ? !CONVERTED_TEXT.test(value)
      : typeof value === 'boolean' || Number.isSafeInteger(value) || isPointer(value),
  );

/** Written in the order of the members that Parse gives. */
const isPointer = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).join() === '__type,className,objectId' &&
  (value as { __type: unknown }).__type === 'Pointer';

/** The sum of whole numbers that a double holds exactly: the database may add decimals or larger ones. Undefined: of others. */
function addExactly(one: unknown, other: unknown): number | undefined {
  const sum = Number(one) + Number(other);
  return [one, other, sum].every(Number.isSafeInteger) ? sum : undefined;
}

/** The fields of two writes of one row as those of one write. @throws Refused where no one write does both */
export function mergeFields(first: ParseRow, second: ParseRow): ParseRow {
  const merged = { ...first };
  for (const [name, value] of Object.entries(second))
    merged[name] = Object.hasOwn(first, name) ? mergeValues(name, first[name], value) : value;
  return merged;
}

/** Removes a field from a row that is only now created. */
export function withoutDeleted(fields: ParseRow): ParseRow {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => !(isOperation(value) && value.__op === 'Delete')),
  );
}

function mergeValues(name: string, held: unknown, written: unknown): unknown {
  if (!isOperation(written) || written.__op === 'Delete') return written;
  if (isOperation(held)) return mergeOperations(name, held, written);
  const merged = applyToValue(held, written);
  return merged === undefined ? refuseMerge(name) : merged;
}

/** Undefined: only the database can tell. */
function applyToValue(held: unknown, written: Operation): unknown {
  const objects = listOf(written['objects']);
  switch (written.__op) {
    case 'Increment':
      return addExactly(held, written['amount']);
    case 'Add':
      return Array.isArray(held) ? [...listOf(held), ...objects] : undefined;
    case 'AddUnique': {
      if (!Array.isArray(held) || !areComparable([...listOf(held), ...objects])) return undefined;
      const known = new Set(held.map(textOf));
      return [...listOf(held), ...withoutRepeats(objects).filter((one) => !known.has(textOf(one)))];
    }
    case 'Remove': {
      if (!Array.isArray(held) || !areComparable([...listOf(held), ...objects])) return undefined;
      const removed = new Set(objects.map(textOf));
      return held.filter((one) => !removed.has(textOf(one)));
    }
    default:
      return undefined;
  }
}

function mergeOperations(name: string, held: Operation, written: Operation): unknown {
  const objects = [...listOf(held['objects']), ...listOf(written['objects'])];
  if (held.__op === 'Delete')
    return written.__op === 'Increment'
      ? written['amount']
      : (applyToValue([], written) ?? refuseMerge(name));
  if (held.__op !== written.__op) return refuseMerge(name);
  switch (held.__op) {
    case 'Increment': {
      const amount = addExactly(held['amount'], written['amount']);
      return amount === undefined ? refuseMerge(name) : { __op: 'Increment', amount };
    }
    case 'Add':
      return { __op: 'Add', objects };
    case 'AddUnique':
    case 'Remove':
      return { __op: held.__op, objects: withoutRepeats(objects) };
    default:
      return refuseMerge(name);
  }
}

function refuseMerge(name: string): never {
  throw refuse.invalidArgument(
    `the change set writes ${name} already, and both writes cannot be one: write the value that it should have at the end`,
    'fields',
  );
}
