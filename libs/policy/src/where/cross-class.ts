import { canonicalClassName, isClassName, Refused, refusals } from '#agent';
import { type ClassAccess, type ClassReach, isRefusal } from '../model/class-access.js';
import { isPlainObject, type PlainObject } from '../model/plain-object.js';
import { allOf, type Where } from '../model/where.js';
import { noneWithheldOn } from '../redaction/withheld-inside.js';
import { assertNotWithheld, resolveFieldPath } from './field-path.js';
import { isPointer, parsePrefixedPointer, type Pointer, reduceTyped } from './typed-value.js';
import { blocked } from '../security-reason.js';

const KEY = /^[A-Za-z][A-Za-z0-9_.]{0,127}$/;
const RELATION_KEY = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

export interface CrossClassRules {
  readonly access: ClassAccess;
  readonly reach: ClassReach;
  readonly checkFields: boolean;
  /** Translates the constraint that is put to another class. */
  readonly inner: (where: unknown, access: ClassAccess) => Where;
}

/** `$inQuery` and its kin with the inner constraint translated for the class it is put to. */
export function crossClassCondition(
  operator: string,
  operand: unknown,
  rules: CrossClassRules,
): Record<string, unknown> {
  if (operator === '$inQuery' || operator === '$notInQuery') {
    return { [operator]: innerQuery(operator, operand, rules).query };
  }
  const { query, key } = members(operator, operand, ['query', 'key']);
  const inner = innerQuery(operator, query, rules);
  const column = columnKey(operator, key, inner.access, rules);
  const where = rules.checkFields
    ? allOf(inner.query.where, noneWithheldOn(column, inner.access))
    : inner.query.where;
  return { [operator]: { query: { ...inner.query, where }, key: column } };
}

/** `{ object, key }`: the rows that the relation `key` of one row leads to. */
export function relatedTo(operand: unknown, rules: CrossClassRules): { object: Pointer; key: string } {
  const { object, key } = members('$relatedTo', operand, ['object', 'key']);
  const owner = ownerOf(object);
  if (!owner) throw blocked('where', 'cross_class_denied', '$relatedTo');
  const access = admitted(owner.className, rules, 'owner');
  if (typeof key !== 'string' || !RELATION_KEY.test(key)) throw needsKey('$relatedTo');
  const relation = resolveFieldPath(key, access, '$relatedTo key', rules.checkFields);
  const field = access.schema?.fields.get(relation);
  const leadsHere = !field?.targetClass || field.targetClass === rules.access.className;
  if (access.schema && (field?.type !== 'Relation' || !leadsHere)) {
    throw new Refused(
      refusals.invalidQuery(
        `'${relation}' of ${access.className} is not a relation to ${rules.access.className}`,
      ),
    );
  }
  return { object: owner, key: relation };
}

function innerQuery(operator: string, operand: unknown, rules: CrossClassRules) {
  const { className, where } = members(operator, operand, ['className', 'where']);
  if (className === undefined) throw new Refused(refusals.invalidQuery(`'${operator}' needs className`));
  const access = admitted(className, rules);
  return { access, query: { className: access.className, where: rules.inner(where, access) } };
}

function admitted(
  className: unknown,
  rules: CrossClassRules,
  site: 'constraint' | 'owner' = 'constraint',
): ClassAccess {
  if (!isClassName(className)) {
    throw blocked('where', 'cross_class_denied');
  }
  const answer = rules.reach.reach(canonicalClassName(className), site);
  if (isRefusal(answer)) throw new Refused(answer);
  return answer;
}

function columnKey(operator: string, key: unknown, access: ClassAccess, rules: CrossClassRules): string {
  if (typeof key !== 'string' || !KEY.test(key)) throw needsKey(operator);
  const path = resolveFieldPath(key, access, `${operator} key`, rules.checkFields);
  assertNotWithheld(path, operator, access, (className) => {
    const answer = rules.reach.reach(className, 'pointer');
    return isRefusal(answer) ? answer : null;
  });
  return path;
}

function members(operator: string, operand: unknown, names: readonly string[]): PlainObject {
  if (!isPlainObject(operand) || Object.keys(operand).some((name) => !names.includes(name))) {
    throw new Refused(
      refusals.invalidQuery(`'${operator}' takes an object with ${names.join(' and ')} only`),
    );
  }
  return operand;
}

function ownerOf(object: unknown): Pointer | null {
  if (typeof object === 'string') return parsePrefixedPointer(object);
  if (!isPointer(object) || !isClassName(object['className'])) return null;
  const { className, objectId } = reduceTyped(object);
  return { __type: 'Pointer', className: String(className), objectId: String(objectId) };
}

function needsKey(operator: string): Refused {
  return new Refused(refusals.invalidQuery(`'${operator}' needs key, the name of a field`));
}
