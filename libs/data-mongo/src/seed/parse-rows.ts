import { createHash } from 'node:crypto';
import { canonicalClassName, isClassName, isObjectId, setOwn } from '#core';
import type { ParseRow } from '#data';
import { inferFieldType, isPlainObject } from '#policy';
import { UnstorableValue } from '../errors.js';
import { UNLISTED_COLUMNS } from '../storage/parse-storage.js';
import { aclToColumns, columnToStorage } from '../storage/parse-values.js';
import { isPointer } from '../storage/class-storage.js';
import { type DraftClass, type DraftClasses, isFieldName } from './parse-schemas.js';
import type { SeedIssues, SeedRelation } from './seed.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The same seed gives the same ids in every run, so that examples and tests may name them. */
function seedId(className: string, index: number): string {
  const digest = createHash('sha256').update(`${className}#${index}`).digest();
  return Array.from(digest.subarray(0, 10), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** Ids of one class, declared or generated, each used once. */
export class SeedIds {
  private readonly seen = new Set<string>();

  constructor(
    private readonly className: string,
    private readonly issues: SeedIssues,
  ) {}

  readId(given: unknown, index: number, path: string): string {
    const id = given === undefined ? seedId(this.className, index) : given;
    if (!isObjectId(id)) {
      this.issues.add(`${path}.objectId`, 'must be up to 32 letters, digits, _ or -');
      return seedId(this.className, index);
    }
    this.issues.unique(this.seen, id, `${path}.objectId`);
    return id;
  }
}

const OWN_SECTIONS: Readonly<Record<string, string>> = {
  _User: 'users',
  _Role: 'roles',
  _Session: 'sessions',
};

const BUILT_IN = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

/** The result for the rows of one class: the rows without relations, and the relations. */
interface ParsedRows {
  readonly objects: Map<string, ParseRow[]>;
  readonly relations: SeedRelation[];
}

export function parseObjects(value: unknown, classes: DraftClasses, issues: SeedIssues): ParsedRows {
  const parsed: ParsedRows = { objects: new Map(), relations: [] };
  for (const [name, rows] of Object.entries(value === undefined ? {} : issues.object(value, 'objects'))) {
    const path = `objects.${name}`;
    const className = isClassName(name) ? canonicalClassName(name) : null;
    const section = className === null ? undefined : OWN_SECTIONS[className];
    if (className === null) issues.add(path, 'is not a class name');
    else if (section !== undefined) issues.add(path, `belongs under '${section}'`);
    else parseClassRows(rows, path, classes.of(className), parsed, issues);
  }
  return parsed;
}

function parseClassRows(
  value: unknown,
  path: string,
  draft: DraftClass,
  parsed: ParsedRows,
  issues: SeedIssues,
): void {
  const ids = new SeedIds(draft.className, issues);
  const rows = issues.list(value, path).map((entry, index) => {
    const at = `${path}[${index}]`;
    const given = issues.object(entry, at);
    const objectId = ids.readId(given['objectId'], index, at);
    return readRow({ ...given, objectId }, at, draft, parsed.relations, issues);
  });
  parsed.objects.set(draft.className, [...(parsed.objects.get(draft.className) ?? []), ...rows]);
}

/** One row: its values checked and typed, its relation operations taken out. */
export function readRow(
  given: ParseRow,
  path: string,
  draft: DraftClass,
  relations: SeedRelation[],
  issues: SeedIssues,
): ParseRow {
  const row: ParseRow = {};
  for (const [field, value] of Object.entries(given)) {
    const at = `${path}.${field}`;
    if (BUILT_IN.has(field)) {
      if (isReadable(field, value, at, issues)) row[field] = value;
    } else if (!isFieldName(field)) issues.add(at, 'is not a field name');
    else if (UNLISTED_COLUMNS.has(field)) issues.add(at, 'cannot be seeded');
    else if (isPlainObject(value) && '__op' in value)
      addRelations(value, field, given, at, draft, relations, issues);
    else if (isOfItsType(field, value, at, draft, issues)) setOwn(row, field, value);
  }
  applyDefaults(row, given, path, draft, issues);
  return row;
}

function isReadable(field: string, value: unknown, path: string, issues: SeedIssues): boolean {
  if (field === 'objectId') return true;
  if (field !== 'ACL') return issues.date(value, path) !== undefined;
  return isStorable(() => aclToColumns(value), path.slice(0, -'.ACL'.length), issues);
}

function isOfItsType(
  field: string,
  value: unknown,
  path: string,
  draft: DraftClass,
  issues: SeedIssues,
): boolean {
  if (value === null) return true;
  const type = inferFieldType(value);
  if (type) draft.declare(field, type, path, issues);
  else issues.add(path, 'is not a value Parse can store');
  if (type?.type === 'Relation') return false;
  return type !== null && isStorable(() => columnToStorage(value), path, issues);
}

function isStorable(store: () => unknown, path: string, issues: SeedIssues): boolean {
  try {
    store();
    return true;
  } catch (error) {
    if (!(error instanceof UnstorableValue)) throw error;
    issues.add(error.path === '' ? path : `${path}.${error.path}`, error.problem);
    return false;
  }
}

/** `{ "__op": "AddRelation", "objects": [pointers] }`: the only operation that a seed may contain. */
function addRelations(
  operation: ParseRow,
  field: string,
  given: ParseRow,
  path: string,
  draft: DraftClass,
  relations: SeedRelation[],
  issues: SeedIssues,
): void {
  const targets = issues.list(operation['objects'], `${path}.objects`);
  if (operation['__op'] !== 'AddRelation' || !targets.every(isPointer)) {
    issues.add(path, 'must be an AddRelation of pointers');
    return;
  }
  const type = inferFieldType(operation);
  if (type) draft.declare(field, type, path, issues);
  const { className } = draft;
  for (const { objectId } of targets)
    relations.push({ className, field, owningId: String(given['objectId']), relatedId: objectId });
}

function applyDefaults(
  row: ParseRow,
  given: ParseRow,
  path: string,
  draft: DraftClass,
  issues: SeedIssues,
): void {
  for (const [field, { required, defaultValue }] of draft.fields) {
    if (given[field] === undefined && defaultValue !== undefined) row[field] = defaultValue;
    else if (required && (given[field] ?? null) === null) issues.add(`${path}.${field}`, 'is required');
  }
}
