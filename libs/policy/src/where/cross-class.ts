import { canonicalClassName, isClassName, refusals, Refused } from '#core';
import { noneWithheldOn } from '../masking/withheld-objects.js';
import { type ClassAccess, type ClassReach, isRefusal } from '../model/class-access.js';
import { blocked } from '../model/security-reason.js';
import { allOf, isPlainObject, type PlainObject, type Where } from '../model/where.js';
import { isPointer, parsePrefixedPointer, type Pointer, reduceTyped } from './column-values.js';
import { assertNotWithheld, resolveFieldPath } from './field-path.js';

const KEY = /^[A-Za-z][A-Za-z0-9_.]{0,127}$/;
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
  const { query, key } = members(operator, operand, ['query', 'key']);
  const inner = innerQuery(operator, query, rules);
  const column = columnKey(operator, key, inner.access, rules);
  const where = rules.checkFields
    ? allOf(inner.query.where, noneWithheldOn(column, inner.access))
    : inner.query.where;
  return { [operator]: { query: { ...inner.query, where }, key: column } };
}

/** `$relatedTo: { object, key }`: the rows in the relation `key` of one row. */
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

/** A query on another class inside a translated constraint; `where` contains no further one. */
export type CrossClassQuery =
  | {
      readonly operator: '$inQuery' | '$notInQuery';
      readonly field: string;
      readonly className: string;
      readonly where: Where;
    }
  | {
      readonly operator: '$select' | '$dontSelect';
      readonly field: string;
      readonly className: string;
      readonly where: Where;
      readonly key: string;
    }
  | { readonly operator: '$relatedTo'; readonly object: Pointer; readonly key: string };

/** Runs a query and returns the constraint that replaces it, such as `{ author: { $in: [pointers] } }`. */
export type ResolveCrossClass = (query: CrossClassQuery) => Promise<Where>;

/** Replaces every cross-class query by the result of `resolve`, innermost first, one after another. */
export async function mapCrossClass(where: Where, resolve: ResolveCrossClass): Promise<Where> {
  const parts: Where[] = [];
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(where)) {
    if (key === '$and' || key === '$or' || key === '$nor') {
      kept[key] = await mapBranches(value, resolve);
    } else if (key === '$relatedTo') {
      parts.push(await resolve({ operator: key, ...(value as { object: Pointer; key: string }) }));
    } else if (isPlainObject(value)) {
      const condition: Record<string, unknown> = {};
      for (const [operator, operand] of Object.entries(value)) {
        const query = await crossClassQueryOf(key, operator, operand, resolve);
        if (query) parts.push(await resolve(query));
        else condition[operator] = operand;
      }
      if (Object.keys(condition).length > 0 || Object.keys(value).length === 0) kept[key] = condition;
    } else {
      kept[key] = value;
    }
  }
  return allOf(kept, ...parts);
}

/** Whether a constraint contains a cross-class query. */
export function hasCrossClassQuery(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$relatedTo') return true;
    if (Array.isArray(value) && key.startsWith('$')) return (value as Where[]).some(hasCrossClassQuery);
    return isPlainObject(value) && Object.keys(value).some((operator) => CROSS_CLASS.has(operator));
  });
}

const CROSS_CLASS = new Set(['$inQuery', '$notInQuery', '$select', '$dontSelect']);

async function mapBranches(branches: unknown, resolve: ResolveCrossClass): Promise<Where[]> {
  const mapped: Where[] = [];
  for (const branch of branches as Where[]) mapped.push(await mapCrossClass(branch, resolve));
  return mapped;
}

async function crossClassQueryOf(
  field: string,
  operator: string,
  operand: unknown,
  resolve: ResolveCrossClass,
): Promise<CrossClassQuery | null> {
  if (operator === '$inQuery' || operator === '$notInQuery') {
    const { className, where } = operand as { className: string; where: Where };
    return { operator, field, className, where: await mapCrossClass(where, resolve) };
  }
  if (operator === '$select' || operator === '$dontSelect') {
    const { query, key } = operand as { query: { className: string; where: Where }; key: string };
    return {
      operator,
      field,
      className: query.className,
      where: await mapCrossClass(query.where, resolve),
      key,
    };
  }
  return null;
}
