import type { ParseRow } from '#data';
import { unstorable } from '../connection/parse-faults.js';
import { isPlainObject } from '../query/plain-value.js';

/** What Parse Server sets itself, or reads as an instruction of the request instead of as a field. */
const NOT_FIELDS = new Set(['objectId', 'createdAt', 'updatedAt', 'className', 'authData', 'sessionToken']);

/** Names with an underscore in front (`_method`, `_SessionToken`) never match: they would change the request. */
const FIELD = /^[A-Za-z][A-Za-z0-9_]*$/;

const OPERATIONS = new Set(['Increment', 'Add', 'AddUnique', 'Remove', 'Delete']);

/**
 * The fields of a write, as they are sent.
 * @throws StoreError `invalid_query` for names and values that Parse Server would read otherwise than as a field's value
 */
export function sendableFields(className: string, fields: ParseRow): ParseRow {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const refused = NOT_FIELDS.has(name) || (name === 'password' && className !== '_User');
      if (refused || !FIELD.test(name)) throw unstorable('a name that no field may have');
      if (name !== 'ACL') return [name, sendableValue(value)];
      assertAcl(value);
      return [name, value];
    }),
  );
}

function sendableValue(value: unknown): unknown {
  if (!isPlainObject(value) || !('__op' in value)) {
    assertPlain(value);
    return value;
  }
  const { __op, amount, objects } = value;
  if (!OPERATIONS.has(String(__op))) throw unstorable('an unknown write operation');
  if (amount !== undefined && !Number.isFinite(amount)) throw unstorable('an amount that is no number');
  assertPlain(objects);
  // On a new row Parse Server would keep what is named twice.
  return __op === 'AddUnique' && Array.isArray(objects) ? { ...value, objects: distinct(objects) } : value;
}

/** Values are JSON, so equal text is equal value. */
function distinct(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** No operator and no path inside a value. */
function assertPlain(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(assertPlain);
  if (!isPlainObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__op' || key.includes('$') || key.includes('.')) throw unstorable('an operator in a value');
    assertPlain(member);
  }
}

function assertAcl(value: unknown): void {
  if (isPlainObject(value) && value['__op'] === 'Delete') return;
  const rights = isPlainObject(value) ? Object.values(value) : null;
  const sound = rights?.every(
    (right) =>
      isPlainObject(right) &&
      Object.entries(right).every(([name, held]) => /^(read|write)$/.test(name) && typeof held === 'boolean'),
  );
  if (!sound) throw unstorable('an ACL of another shape');
}
