import { Refused, refusals } from '#core';
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
    case 'Increment': {
      const { amount } = written;
      return typeof held === 'number' && typeof amount === 'number' ? held + amount : undefined;
    }
    case 'Add':
      return Array.isArray(held) ? [...listOf(held), ...objects] : undefined;
    case 'AddUnique': {
      if (!Array.isArray(held)) return undefined;
      const known = new Set(held.map(textOf));
      return [...listOf(held), ...withoutRepeats(objects).filter((one) => !known.has(textOf(one)))];
    }
    case 'Remove': {
      const removed = new Set(objects.map(textOf));
      return Array.isArray(held) ? held.filter((one) => !removed.has(textOf(one))) : undefined;
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
      const [one, other] = [held['amount'], written['amount']];
      if (typeof one !== 'number' || typeof other !== 'number') return refuseMerge(name);
      return { __op: 'Increment', amount: one + other };
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
  throw new Refused(
    refusals.invalidArgument(
      `the change set writes ${name} already, and both writes cannot be one: write the value that it should have at the end`,
      'fields',
    ),
  );
}
