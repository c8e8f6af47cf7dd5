import { orThrow, type Refusal, Refused, refusals } from '#core';
import { type ClassAccess, columnRefusal, withheldTarget } from '../model/class-access.js';
import { hasInternalSegment, isMagicName, rootOf } from '../model/field-names.js';
import { isPlainObject } from '../model/where.js';
import { blocked } from '../model/security-reason.js';

/** A segment with a special meaning in the database or in JavaScript. */
function isOddSegment(segment: string): boolean {
  return segment === '' || isMagicName(segment) || segment.includes('$') || segment.includes('\0');
}

/**
 * Every segment must be a possible field name and not an internal one.
 * @throws Refused `invalid_query`, `security_blocked` (denied_internal_field)
 */
export function assertFieldPath(path: string): void {
  if (path.split('.').some(isOddSegment)) {
    throw new Refused(refusals.invalidQuery(`'${path.slice(0, 128)}' is not a field name`));
  }
  assertNotInternal(path);
}

function assertNotInternal(path: string): void {
  if (hasInternalSegment(path)) {
    throw blocked('where', 'denied_internal_field', path.slice(0, 128));
  }
}

/** The root of a wire path must be readable. @throws Refused `access_denied` */
export function assertReadable(
  context: string,
  written: string,
  wirePath: string,
  access: ClassAccess,
): void {
  orThrow(columnRefusal(context, written, rootOf(wirePath), access));
}

/** The checked wire path of any spelling. `checkFields: false` skips the allowlist, never the internal fields. */
export function resolveFieldPath(
  path: string,
  access: ClassAccess,
  context: string,
  checkFields = true,
): string {
  assertFieldPath(path);
  const wire = access.names.wirePath(path);
  assertNotInternal(wire);
  if (checkFields) assertReadable(context, path, wire, access);
  return wire;
}

/**
 * A condition on a column that points to a withheld class may only test for presence: a pattern or a range would reveal ids.
 * @param judgeClass the class gate, which has exceptions
 */
export function assertNotWithheld(
  path: string,
  condition: unknown,
  access: ClassAccess,
  judgeClass: (className: string) => Refusal | null,
): void {
  const target = withheldTarget(path, access);
  if (target === undefined || testsPresence(condition)) return;
  if (judgeClass(target.className)) throw new Refused(target.refusal);
}

/**
 * A text index may cover any column: also ids of withheld classes and texts of their objects.
 * @throws Refused
 */
export function assertNoTextOfOthers({ withheld, mayHold }: ClassAccess): void {
  if (!mayHold && (withheld?.size ?? 0) === 0) return;
  throw new Refused(
    refusals.invalidQuery(
      "'$text' searches columns that may hold objects of classes that are not yours: search one column by $regex instead",
    ),
  );
}

function testsPresence(condition: unknown): boolean {
  if (condition === null) return true;
  return (
    isPlainObject(condition) &&
    Object.entries(condition).every(
      ([operator, operand]) =>
        operator === '$exists' || (operand === null && (operator === '$eq' || operator === '$ne')),
    )
  );
}
