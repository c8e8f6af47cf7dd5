import { isPlainObject } from '../model/plain-object.js';
import { allOf, type Where } from '../model/where.js';
import type { Pointer } from './typed-value.js';

/** A question put to another class inside a translated constraint; `where` holds no further such question. */
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

/** Answers a question with the constraint that takes its place, such as `{ author: { $in: [pointers] } }`. */
export type ResolveCrossClass = (query: CrossClassQuery) => Promise<Where>;

/** The constraint with every question to another class replaced by its answer, innermost first, one after another. */
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
        const query = await questionOf(key, operator, operand, resolve);
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

/** Whether a constraint still asks another class something. */
export function asksOtherClasses(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$relatedTo') return true;
    if (Array.isArray(value) && key.startsWith('$')) return (value as Where[]).some(asksOtherClasses);
    return isPlainObject(value) && Object.keys(value).some((operator) => CROSS_CLASS.has(operator));
  });
}

const CROSS_CLASS = new Set(['$inQuery', '$notInQuery', '$select', '$dontSelect']);

async function mapBranches(branches: unknown, resolve: ResolveCrossClass): Promise<Where[]> {
  const mapped: Where[] = [];
  for (const branch of branches as Where[]) mapped.push(await mapCrossClass(branch, resolve));
  return mapped;
}

async function questionOf(
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
