import type { CountQuery, FindQuery, IncludePlan } from '#data';
import { type AgentScope, rootOf, type Where } from '#policy';
import { isPlainObject } from '../query/plain-value.js';
import { isExpressible } from '../query/where-to-rest.js';

/** Whether Parse Server's query language has words for it. */
export function canBeAsked({ where, include = [] }: Pick<FindQuery, 'where' | 'include'>): boolean {
  return isExpressible(where) && include.every(canBeAsked);
}

/**
 * Whether Parse Server, asked with the caller's session, answers exactly what is asked for. It does not where
 * - a predicate names a column that the session may not query,
 * - who may search a class and who may read its rows by id differ: it takes every query but the plainest for a search,
 * - it hides the very column that says which rows are shown differently.
 */
export function serverAgrees(query: FindQuery, scope: AgentScope): boolean {
  const { className, where, include = [] } = query;
  if (namesIds(where) && !searchedAsRead(className, scope)) return false;
  return (
    countAgrees(query, scope) &&
    !hidesDeciders(className, scope) &&
    include.every((plan) => includeAgrees(plan, scope))
  );
}

export function countAgrees({ className, where }: CountQuery, scope: AgentScope): boolean {
  const hidden = scope.rights.protectedColumns(className)?.hidden;
  return hidden === undefined || ![...fieldsOf(where)].some((field) => hidden.has(field));
}

function includeAgrees({ targetClass: className, where, include }: IncludePlan, scope: AgentScope): boolean {
  return searchedAsRead(className, scope) && serverAgrees({ className, where, include, limit: 1 }, scope);
}

function searchedAsRead(className: string, { rights }: AgentScope): boolean {
  const [find, get] = [rights.verdict(className, 'find'), rights.verdict(className, 'get')];
  return JSON.stringify(find) === JSON.stringify(get);
}

function hidesDeciders(className: string, { rights }: AgentScope): boolean {
  const columns = rights.protectedColumns(className);
  return columns !== null && columns.perRow && columns.deciders.some((field) => columns.hidden.has(field));
}

function namesIds(where: Where): boolean {
  return Object.entries(where).some(([key, value]) => {
    if (key === '$and' && Array.isArray(value)) return value.filter(isPlainObject).some(namesIds);
    return key === 'objectId';
  });
}

/** Roots of every field that a constraint names, at any depth of its branches. */
function fieldsOf(where: Where): Set<string> {
  const fields = new Set<string>();
  for (const [key, value] of Object.entries(where)) {
    if (!key.startsWith('$')) fields.add(rootOf(key));
    else if (Array.isArray(value))
      for (const branch of value.filter(isPlainObject))
        for (const field of fieldsOf(branch)) fields.add(field);
  }
  return fields;
}
