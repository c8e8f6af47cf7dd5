import { createHash } from 'node:crypto';
import { canonicalClassName, isClassName, isObjectId } from '#agent';
import type { ParseRow } from '#data';
import { fieldTypeOf } from '#policy';
import { UnstorableValue } from '../errors.js';
import { UNLISTED_COLUMNS } from '../schema/schema-row.js';
import { aclToColumns } from '../storage/access-lists.js';
import { isPointer } from '../storage/object-ids.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import { columnToStorage } from '../storage/to-storage.js';
import { type DraftClass, type DraftClasses, isFieldName } from './parse-schemas.js';
import type { FaultList, SeedRelation } from './seed.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The same seed gives the same ids, run after run, so that examples and tests may name them. */
function seedId(className: string, index: number): string {
  const digest = createHash('sha256').update(`${className}#${index}`).digest();
  return Array.from(digest.subarray(0, 10), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** Ids of one class: given or made, each used once. */
export class SeedIds {
  private readonly seen = new Set<string>();

  constructor(
    private readonly className: string,
    private readonly faults: FaultList,
  ) {}

  idOf(given: unknown, index: number, path: string): string {
    const id = given === undefined ? seedId(this.className, index) : given;
    if (!isObjectId(id)) {
      this.faults.add(`${path}.objectId`, 'must be up to 32 letters, digits, _ or -');
      return seedId(this.className, index);
    }
    this.faults.unique(this.seen, id, `${path}.objectId`);
    return id;
  }
}

const OWN_SECTIONS: Readonly<Record<string, string>> = {
  _User: 'users',
  _Role: 'roles',
  _Session: 'sessions',
};

const BUILT_IN = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

/** What rows of one class come to: the rows without relations, and the relations. */
interface ParsedRows {
  readonly objects: Map<string, ParseRow[]>;
  readonly relations: SeedRelation[];
}

export function parseObjects(value: unknown, classes: DraftClasses, faults: FaultList): ParsedRows {
  const parsed: ParsedRows = { objects: new Map(), relations: [] };
  for (const [name, rows] of Object.entries(value === undefined ? {} : faults.object(value, 'objects'))) {
    const path = `objects.${name}`;
    const className = isClassName(name) ? canonicalClassName(name) : null;
    const section = className === null ? undefined : OWN_SECTIONS[className];
    if (className === null) faults.add(path, 'is not a class name');
    else if (section !== undefined) faults.add(path, `belongs under '${section}'`);
    else parseClassRows(rows, path, classes.of(className), parsed, faults);
  }
  return parsed;
}

function parseClassRows(
  value: unknown,
  path: string,
  draft: DraftClass,
  parsed: ParsedRows,
  faults: FaultList,
): void {
  const ids = new SeedIds(draft.className, faults);
  const rows = faults.list(value, path).map((entry, index) => {
    const at = `${path}[${index}]`;
    const given = faults.object(entry, at);
    const objectId = ids.idOf(given['objectId'], index, at);
    return readRow({ ...given, objectId }, at, draft, parsed.relations, faults);
  });
  parsed.objects.set(draft.className, [...(parsed.objects.get(draft.className) ?? []), ...rows]);
}

/** One row: its values checked and typed, its relation operations taken out. */
export function readRow(
  given: ParseRow,
  path: string,
  draft: DraftClass,
  relations: SeedRelation[],
  faults: FaultList,
): ParseRow {
  const row: ParseRow = {};
  for (const [field, value] of Object.entries(given)) {
    const at = `${path}.${field}`;
    if (BUILT_IN.has(field)) {
      if (isReadable(field, value, at, faults)) row[field] = value;
    } else if (!isFieldName(field)) faults.add(at, 'is not a field name');
    else if (UNLISTED_COLUMNS.has(field)) faults.add(at, 'cannot be seeded');
    else if (isPlainObject(value) && '__op' in value)
      addRelations(value, field, given, at, draft, relations, faults);
    else if (isOfItsType(field, value, at, draft, faults)) setOwn(row, field, value);
  }
  applyDefaults(row, given, path, draft, faults);
  return row;
}

function isReadable(field: string, value: unknown, path: string, faults: FaultList): boolean {
  if (field === 'objectId') return true;
  if (field !== 'ACL') return faults.date(value, path) !== undefined;
  return isStorable(() => aclToColumns(value), path.slice(0, -'.ACL'.length), faults);
}

function isOfItsType(
  field: string,
  value: unknown,
  path: string,
  draft: DraftClass,
  faults: FaultList,
): boolean {
  if (value === null) return true;
  const type = fieldTypeOf(value);
  if (type) draft.declare(field, type, path, faults);
  else faults.add(path, 'is not a value Parse can store');
  if (type?.type === 'Relation') return false;
  return type !== null && isStorable(() => columnToStorage(value), path, faults);
}

function isStorable(store: () => unknown, path: string, faults: FaultList): boolean {
  try {
    store();
    return true;
  } catch (error) {
    if (!(error instanceof UnstorableValue)) throw error;
    faults.add(error.path === '' ? path : `${path}.${error.path}`, error.problem);
    return false;
  }
}

/** `{ "__op": "AddRelation", "objects": [pointers] }`: the one operation a seed may hold. */
function addRelations(
  operation: ParseRow,
  field: string,
  given: ParseRow,
  path: string,
  draft: DraftClass,
  relations: SeedRelation[],
  faults: FaultList,
): void {
  const targets = faults.list(operation['objects'], `${path}.objects`);
  if (operation['__op'] !== 'AddRelation' || !targets.every(isPointer)) {
    faults.add(path, 'must be an AddRelation of pointers');
    return;
  }
  const type = fieldTypeOf(operation);
  if (type) draft.declare(field, type, path, faults);
  const { className } = draft;
  for (const { objectId } of targets)
    relations.push({ className, field, owningId: String(given['objectId']), relatedId: objectId });
}

function applyDefaults(
  row: ParseRow,
  given: ParseRow,
  path: string,
  draft: DraftClass,
  faults: FaultList,
): void {
  for (const [field, { required, defaultValue }] of draft.fields) {
    if (given[field] === undefined && defaultValue !== undefined) row[field] = defaultValue;
    else if (required && (given[field] ?? null) === null) faults.add(`${path}.${field}`, 'is required');
  }
}
