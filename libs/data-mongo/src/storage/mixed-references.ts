import { type Document, ObjectId } from 'mongodb';
import type { FieldSchema } from '#policy';
import { findKind, HEX_ID, idText, isCertain, isIdValue } from './plain-scalars.js';

/*
 * One reference that some documents hold as the id of its target and others as text, or as an ObjectId where the target has a
 * text: conditions match every form, and pipelines see one.
 */

/** The forms in which documents may hold the id of a reference; any other value has one. */
export function listStoredForms(stored: unknown, field: FieldSchema | undefined): unknown[] {
  const isCertainId = isCertain(field) && !field?.mixedIds;
  if (field?.targetClass === undefined || isCertainId || !isIdValue(stored)) return [stored];
  if (typeof stored !== 'string') return [stored, idText(stored)];
  return HEX_ID.test(stored) ? [stored, ObjectId.createFromHexString(stored)] : [stored];
}

/** An expression: an id that is in the form of the target of a column, in the other form of the column. */
export function toOtherForm(id: string, field: FieldSchema): Document {
  const kind = findKind(field);
  const to = kind === 'objectId' || kind === 'number' ? 'string' : 'objectId';
  return { $convert: { input: id, to, onError: id, onNull: id } };
}

/** An expression: a stored value of a column with its ids in the form of their target. Null: they are in one form. */
export function unifyIds(value: unknown, field: FieldSchema | undefined): unknown {
  if (!field) return null;
  const one = field.mixedIds ? unifyId(field) : null;
  if (one) return field.type === 'Array' ? mapList(value, one) : one(value);
  const members = [...(field.members ?? [])].flatMap(([name, member]) => {
    const unified = unifyIds(`$$document.${name}`, member);
    return unified === null ? [] : [[name, unified] as const];
  });
  if (members.length === 0) return null;
  const unified = { $mergeObjects: ['$$document', Object.fromEntries(members)] };
  const inDocument = (document: unknown): Document => ({
    $let: { vars: { document }, in: { $cond: [isOfType('$$document', 'object'), unified, '$$document'] } },
  });
  return mapList(value, inDocument);
}

const isOfType = (value: unknown, type: string): Document => ({ $eq: [{ $type: value }, type] });

const mapList = (value: unknown, one: (entry: unknown) => Document): Document => ({
  $cond: [{ $isArray: [value] }, { $map: { input: value, as: 'entry', in: one('$$entry') } }, one(value)],
});

/** Null for UUIDs: MongoDB before 8.0 makes none of a text. */
function unifyId(field: FieldSchema): ((id: unknown) => Document) | null {
  switch (findKind(field)) {
    case 'objectId':
      return (id) => ({ $convert: { input: id, to: 'objectId', onError: id, onNull: id } });
    case 'number':
      return (id) => ({
        $cond: [isOfType(id, 'string'), { $convert: { input: id, to: 'double', onError: id } }, id],
      });
    case 'uuid':
      return null;
    default:
      return (id) => ({ $cond: [isOfType(id, 'objectId'), { $toString: id }, id] });
  }
}
