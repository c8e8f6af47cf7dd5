import { canonicalClassName, isClassName, Refused, refuse } from '#core';
import { isFieldPath } from '../model/field-names.js';
import { noneWithheldOn } from '../masking/withheld-objects.js';
import {
  assertNotWithheld,
  type ClassAccess,
  type ClassReach,
  isRefusal,
  resolveFieldPath,
  assertOneDatabase,
} from '../model/class-access.js';
import {
  mergeFilters,
  blockFilter,
  isPlainObject,
  isPointer,
  isTyped,
  parsePrefixedPointer,
  type PlainObject,
  type Pointer,
  reduceTyped,
  type Where,
} from '../model/where.js';
import { type Column, columnValue, type ValueRules } from './column-values.js';

const RELATION_KEY = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;

export interface CrossClassRules {
  readonly access: ClassAccess;
  readonly reach: ClassReach;
  readonly checkFields: boolean;
  /** Translates the constraint of the inner query. */
  readonly inner: (where: unknown, access: ClassAccess) => Where;
}

/** `$inQuery`, `$notInQuery`, `$select` or `$dontSelect` with the inner constraint translated for its class. */
export function crossClassCondition(
  operator: string,
  operand: unknown,
  rules: CrossClassRules,
): Record<string, unknown> {
  if (operator === '$inQuery' || operator === '$notInQuery') {
    return { [operator]: innerQuery(operator, operand, rules).query };
  }
  const { query, key } = requireMembers(operator, operand, ['query', 'key']);
  const inner = innerQuery(operator, query, rules);
  const column = columnKey(operator, key, inner.access, rules);
  const where = rules.checkFields
    ? mergeFilters(inner.query.where, noneWithheldOn(column, inner.access))
    : inner.query.where;
  return { [operator]: { query: { ...inner.query, where }, key: column } };
}

/** `$relatedTo: { object, key }`: the rows in the relation `key` of one row. */
export function parseRelatedTo(operand: unknown, rules: CrossClassRules): { object: Pointer; key: string } {
  const { object, key } = requireMembers('$relatedTo', operand, ['object', 'key']);
  const owner = parseOwner(object);
  if (!owner) throw blockFilter('where', 'cross_class_denied', '$relatedTo');
  const access = admitClass(owner.className, rules, 'owner');
  if (typeof key !== 'string' || !RELATION_KEY.test(key)) throw needsKey('$relatedTo');
  const relation = resolveFieldPath(key, access, '$relatedTo key', rules.checkFields);
  const field = access.schema?.fields.get(relation);
  const leadsHere = !field?.targetClass || field.targetClass === rules.access.className;
  if (access.schema && (field?.type !== 'Relation' || !leadsHere)) {
    throw refuse.invalidQuery(
      `'${relation}' of ${access.className} is not a relation to ${rules.access.className}`,
    );
  }
  return { object: owner, key: relation };
}

function innerQuery(operator: string, operand: unknown, rules: CrossClassRules) {
  const { className, where } = requireMembers(operator, operand, ['className', 'where']);
  if (className === undefined) throw refuse.invalidQuery(`'${operator}' needs className`);
  const access = admitClass(className, rules);
  return { access, query: { className: access.className, where: rules.inner(where, access) } };
}

function admitClass(
  className: unknown,
  rules: CrossClassRules,
  site: 'constraint' | 'owner' = 'constraint',
): ClassAccess {
  if (!isClassName(className)) {
    throw blockFilter('where', 'cross_class_denied');
  }
  const answer = rules.reach.reach(canonicalClassName(className), site);
  if (isRefusal(answer)) throw new Refused(answer);
  assertOneDatabase(rules.access, answer);
  return answer;
}

function columnKey(operator: string, key: unknown, access: ClassAccess, rules: CrossClassRules): string {
  if (!isFieldPath(key)) throw needsKey(operator);
  const path = resolveFieldPath(key, access, `${operator} key`, rules.checkFields);
  assertNotWithheld(path, operator, access, (className) => {
    const answer = rules.reach.reach(className, 'pointer');
    return isRefusal(answer) ? answer : null;
  });
  return path;
}

const EXAMPLES: PlainObject = {
  className: 'CLASS',
  where: { FIELD: 'VALUE' },
  query: { className: 'CLASS', where: { FIELD: 'VALUE' } },
  object: { __type: 'Pointer', className: 'CLASS', objectId: 'ID' },
  key: 'FIELD',
};

function requireMembers(operator: string, operand: unknown, names: readonly string[]): PlainObject {
  if (!isPlainObject(operand) || Object.keys(operand).some((name) => !names.includes(name))) {
    throw refuse.invalidQuery(
      `'${operator}' takes an object with ${names.join(' and ')} only, such as ${JSON.stringify(Object.fromEntries(names.map((name) => [name, EXAMPLES[name]])))}`,
    );
  }
  return operand;
}

function parseOwner(object: unknown): Pointer | null {
  if (typeof object === 'string') return parsePrefixedPointer(object);
  if (!isPointer(object) || !isClassName(object['className'])) return null;
  const { className, objectId } = reduceTyped(object);
  return { __type: 'Pointer', className: String(className), objectId: String(objectId) };
}

function needsKey(operator: string): Refused {
  return refuse.invalidQuery(`'${operator}' needs key, the name of a field`);
}

/** Of each operator on a relation, how the rows that hold a member are compared. */
const HOLDS: Readonly<Record<string, '$inRelation' | '$notInRelation'>> = {
  $eq: '$inRelation',
  $in: '$inRelation',
  $inQuery: '$inRelation',
  $ne: '$notInRelation',
  $nin: '$notInRelation',
  $notInQuery: '$notInRelation',
};

/** The rows whose relation holds, or does not hold, one of the members that the condition names. */
export function relationConditions(
  value: unknown,
  column: Column,
  values: ValueRules,
  rules: () => CrossClassRules,
): Where[] {
  const { path, className, targetClass } = column;
  if (targetClass === undefined) throw needsMember(column);
  const operators = isPlainObject(value) && !isTyped(value) ? value : { $eq: value };
  return Object.entries(operators).map(([operator, operand]) => {
    const holds = Object.hasOwn(HOLDS, operator) ? HOLDS[operator] : undefined;
    if (holds === undefined) throw needsMember(column);
    // The caller named the column, and may not learn of a class behind it.
    const gate = values.judgeClass(targetClass);
    if (gate) throw refuse.withheldColumn(path, gate.details?.kind ?? 'hidden_class');
    const asked = rules();
    if (operator === '$inQuery' || operator === '$notInQuery') {
      const { query } = innerQuery(operator, operand, asked);
      if (query.className !== targetClass) throw needsMember(column);
      return { [path]: { [holds]: { className, members: query } } };
    }
    if (Array.isArray(operand) !== (operator === '$in' || operator === '$nin')) throw needsMember(column);
    const ids = [operand].flat().map((one) => memberId(one, column, values));
    // The member itself must be one that the caller may read.
    const target = admitClass(targetClass, asked, 'owner').className;
    return { [path]: { [holds]: { className, members: { className: target, ids } } } };
  });
}

function memberId(value: unknown, column: Column, rules: ValueRules): string {
  if (typeof value !== 'string' && !isTyped(value)) throw needsMember(column);
  const member = columnValue(value, { ...column, type: 'Pointer' }, rules);
  if (!isPointer(member) || member['className'] !== column.targetClass) throw needsMember(column);
  return String(member['objectId']);
}

function needsMember({ path }: Column): Refused {
  return refuse.invalidQuery(
    `'${path}' is a relation: compare it with a Pointer to one member, with $eq, $ne, $in, $nin, $inQuery or $notInQuery. ` +
      'The members of one row are asked for with $relatedTo in a query of their class',
  );
}
