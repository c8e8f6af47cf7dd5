import type { ParseRow } from '#data';
import { unstorable } from '../connection/parse-faults.js';
import { isPlainObject } from '../query/plain-value.js';

/** What Parse Server sets itself, or reads as an instruction of the request instead of as a field. */
const NOT_FIELDS = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'className',
  'password',
  'authData',
  'sessionToken',
]);

/** Names with an underscore in front (`_method`, `_SessionToken`) never match: they would change the request. */
const FIELD = /^[A-Za-z][A-Za-z0-9_]*$/;

const OPERATIONS = new Set(['Increment', 'Add', 'AddUnique', 'Remove', 'Delete']);

/**
 * The fields of a write, as they are sent.
 * @throws StoreError `invalid_query` for names and values that Parse Server would read otherwise than as a field's value
 */
export function sendableFields(fields: ParseRow): ParseRow {
  for (const [name, value] of Object.entries(fields)) {
    if (!FIELD.test(name) || NOT_FIELDS.has(name)) throw unstorable('a name that no field may have');
    if (name === 'ACL') assertAcl(value);
    else assertValue(value);
  }
  return fields;
}

function assertValue(value: unknown): void {
  if (!isPlainObject(value) || !('__op' in value)) return assertPlain(value);
  if (!OPERATIONS.has(String(value['__op']))) throw unstorable('an unknown write operation');
  const { amount, objects } = value;
  if (amount !== undefined && !Number.isFinite(amount)) throw unstorable('an amount that is no number');
  assertPlain(objects);
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
