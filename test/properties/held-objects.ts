import { type ClassName, CLASS_NAMES, type Column, rowId, ROWS } from './vocabulary.js';

/** Classes as objects inside others name them; users without their underscore, as some do. */
const HELD = ['Ledger', 'Farmer', 'Crate', 'User'] as const;
const DEPTHS = [0, 1, 2, 3] as const;

const classOf = (written: string): ClassName =>
  CLASS_NAMES.find((name) => name === written || name === `_${written}`) ?? 'Orchard';

/** The forms in which a row may hold an object of another class. */
const FORMS: readonly ((className: string, objectId: string) => unknown)[] = [
  (className, objectId) => ({ __type: 'Pointer', className, objectId }),
  (className, objectId) => `${className}$${objectId}`,
  (className, objectId) => ({ objectId, className, tone: `of ${objectId}` }),
];

const formed = (number: number, className: string, objectId: string): unknown =>
  FORMS[number % FORMS.length]?.(className, objectId);

/** The value of that number of a column that holds objects of others, at several depths. */
export function holding({ kind }: Column, index: number): unknown {
  const held = DEPTHS.map((slot) => {
    const className = HELD[(index + slot) % HELD.length] as string;
    return formed(0, className, rowId(classOf(className), index % ROWS));
  });
  const tone = `plain ${index}`;
  if (kind === 'pile') return [tone, held[0], { of: held[1] }, [held[2]]];
  return { tone, inner: held[0], more: [{ at: held[1] }], deep: { deeper: held[2], level: index } };
}

export const isHolding = ({ kind }: Column): boolean => kind === 'bag' || kind === 'pile';

/**
 * The same with other objects in the place of some: another one in each row and each world, in another form. What a placeholder
 * tells, the class as it is written, stays.
 */
export function withOthers(
  value: unknown,
  isReplaced: (className: ClassName) => boolean,
  { column, row, secret }: { readonly column: Column; readonly row: number; readonly secret: boolean },
): { readonly value: unknown; readonly traces: readonly string[] } {
  const traces: string[] = [];
  let slot = 0;
  const replaced = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(replaced);
    if (inner === null || typeof inner !== 'object') return inner;
    const { className } = inner as { className?: unknown };
    if (typeof className !== 'string')
      return Object.fromEntries(Object.entries(inner).map(([key, member]) => [key, replaced(member)]));
    const name = classOf(className);
    if (!isReplaced(name)) return inner;
    slot += 1;
    if (!secret) return formed(row + slot, className, rowId(name, (row * 2 + slot) % ROWS));
    const objectId = `ZEKRETheld${column.name}r${row}n${slot}`;
    traces.push(objectId);
    return formed(2 * row + slot + 1, className, objectId);
  };
  return { value: replaced(value), traces };
}

/** Guesses of what such a column holds, in every form. */
export const GUESSES: readonly unknown[] = HELD.flatMap((className) =>
  FORMS.flatMap((form) => [0, 1, 2].map((index) => form(className, rowId(classOf(className), index)))),
);

export const INNER_PATHS = ['inner', 'inner.objectId', 'more.at', 'deep.deeper', 'of', '1', '3.0'] as const;
