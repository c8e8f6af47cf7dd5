import type { ClassAccess } from '../model/class-access.js';
import { rootOf } from '../model/field-names.js';
import type { Where } from '../model/where.js';

/** Containers inside a column that pipelines see; what lies deeper they see empty, rather than unlooked at. */
const DEPTH = 6;

/** Whether the path leads into a column that may hold objects of a class withheld from the agent. */
export function leadsInside(path: string, { mayHold }: ClassAccess): boolean {
  return mayHold !== undefined && path.includes('.') && mayHold.columns.has(rootOf(path));
}

/**
 * What has to hold beside any condition on the path: that no object on the way is of a withheld class. Whatever such an object
 * says, the answer is the same. Null where there can be none.
 */
export function noneWithheldOn(path: string, access: ClassAccess): Where | null {
  if (!access.mayHold || !leadsInside(path, access)) return null;
  const { classes } = access.mayHold;
  const segments = path.split('.');
  const containers = segments.slice(0, -1).map((_, index) => segments.slice(0, index + 1).join('.'));
  return Object.fromEntries(containers.map((container) => [`${container}.className`, { $nin: classes }]));
}

/**
 * An expression for a value of such a column, with a placeholder in the place of every object of a withheld class, as rows that
 * are returned have it: a pipeline could part an id from the class that gives it away.
 * @param value a reference: `$column`, `$$row.column`
 */
export function withPlaceholders(value: string, classes: readonly string[], depth = DEPTH): unknown {
  const isObject = { $eq: [{ $type: value }, 'object'] };
  const isWithheld = { $and: [isObject, { $in: [`${value}.className`, classes] }] };
  const placeholder = { className: `${value}.className`, __redacted: { $literal: true } };
  const hasMembers = { $or: [isObject, { $isArray: [value] }] };
  const inside = { $cond: [hasMembers, withMembers(value, classes, depth), value] };
  return { $cond: [isWithheld, placeholder, inside] };
}

/** Lists and objects go one way, as entries of key and value, so that the expression grows with its depth and not by its power. */
function withMembers(value: string, classes: readonly string[], depth: number): unknown {
  if (depth === 0) return { $cond: [{ $isArray: [value] }, [], {}] };
  const [member, members] = [`member${depth}`, `members${depth}`];
  const entries = {
    $cond: [
      { $isArray: [value] },
      { $map: { input: value, as: member, in: { k: '', v: `$$${member}` } } },
      { $objectToArray: value },
    ],
  };
  const seen = {
    $map: {
      input: entries,
      as: member,
      in: { k: `$$${member}.k`, v: withPlaceholders(`$$${member}.v`, classes, depth - 1) },
    },
  };
  const together = {
    $cond: [{ $isArray: [value] }, `$$${members}.v`, { $arrayToObject: `$$${members}` }],
  };
  return { $let: { vars: { [members]: seen }, in: together } };
}
