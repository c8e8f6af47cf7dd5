import { Refused, refusals } from '#agent';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import { assertFieldPath } from './field-path.js';
import { blocked } from '../security-reason.js';

const MAX_DEPTH = 8;
/** Fields and operators in one constraint: each costs the judging of its name and, for a pattern, of its text. */
const MAX_MEMBERS = 1000;

const CODE_EXECUTION = new Set(['$where', '$function', '$accumulator', '$expr']);

const CROSS_CLASS = ['$inQuery', '$notInQuery', '$select', '$dontSelect', '$relatedTo'] as const;

/** Everything a `where` may say, in the order the refusal lists it. */
export const SCANNED_OPERATORS: readonly string[] = [
  '$lt $lte $gt $gte $ne $eq $exists',
  '$in $nin $all $containedIn $containsAll',
  '$regex $options $text $search',
  '$near $nearSphere $geoWithin $geoIntersects $centerSphere $box $polygon $geometry',
  '$maxDistance $maxDistanceInMiles $maxDistanceInKilometers $maxDistanceInRadians',
  '$or $and $nor',
  CROSS_CLASS.join(' '),
].flatMap((group) => group.split(' '));
const KNOWN = new Set(SCANNED_OPERATORS);
const OWN_DEPTH = new Set<string>(CROSS_CLASS);

/**
 * The rules that hold at any depth and in any position, judged before a constraint is read for its meaning:
 * no code, no unknown operator, no internal column, no more than 8 levels, nothing that JSON could not say.
 */
export function scanWhere(where: PlainObject): void {
  const budget: Budget = { left: MAX_MEMBERS };
  for (const [key, value] of Object.entries(where)) scanMember(key, value, 1, budget);
}

interface Budget {
  left: number;
}

function scanMember(key: string, value: unknown, depth: number, budget: Budget): void {
  budget.left -= 1;
  if (budget.left < 0) {
    throw new Refused(refusals.invalidQuery(`Query exceeds ${MAX_MEMBERS} fields and operators`));
  }
  if (!key.startsWith('$')) {
    assertFieldPath(key);
  } else if (CODE_EXECUTION.has(key)) {
    throw blocked('where', 'code_execution', key);
  } else if (!KNOWN.has(key)) {
    throw new Refused(
      refusals.invalidQuery(
        `Unknown query operator '${key.slice(0, 64)}'. Allowed operators: ${SCANNED_OPERATORS.join(', ')}`,
      ),
    );
  }
  // An embedded constraint is scanned when it is translated, and counts its own depth.
  if (!OWN_DEPTH.has(key)) scanValue(value, depth, budget);
}

function scanValue(value: unknown, depth: number, budget: Budget): void {
  if (isScalar(value) || value instanceof Date) return;
  if (depth > MAX_DEPTH) {
    throw new Refused(refusals.invalidQuery(`Query exceeds maximum depth of ${MAX_DEPTH}`));
  }
  if (Array.isArray(value)) {
    for (const element of value) scanValue(element, depth + 1, budget);
  } else if (isPlainObject(value)) {
    for (const [key, member] of Object.entries(value)) scanMember(key, member, depth + 1, budget);
  } else {
    throw new Refused(
      refusals.invalidQuery('A query holds only strings, finite numbers, booleans, null, arrays and objects'),
    );
  }
}

export function isScalar(value: unknown): value is string | number | boolean | null {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}
