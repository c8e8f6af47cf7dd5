import { canonicalClassName, isClassName } from '#core';
import {
  type ClassLevelPermissions,
  FIELD_TYPES,
  type FieldSchema,
  type FieldType,
  isSameType,
  typeName,
  isPlainObject,
} from '#policy';
import { BUILT_IN_COLUMNS, type StoredIndex, SYSTEM_COLUMNS } from '../schema/schema-row.js';
import type { SeedIssues, SeedClass } from './seed.js';

const TYPES: ReadonlySet<string> = new Set(FIELD_TYPES);

const PERMISSIONS = [
  'ACL',
  'find',
  'count',
  'get',
  'create',
  'update',
  'delete',
  'addField',
  'readUserFields',
  'writeUserFields',
  'protectedFields',
];

const INDEX_KINDS = new Set<unknown>([1, -1, 'text', '2d', '2dsphere', 'hashed']);

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

export const isFieldName = (name: string): boolean => FIELD_NAME.test(name);

/** A class under construction: declared fields first, then fields that rows add. */
export class DraftClass {
  readonly fields = new Map<string, FieldSchema>();
  classLevelPermissions: ClassLevelPermissions | null = null;
  indexes: readonly StoredIndex[] = [];

  constructor(readonly className: string) {
    const known = { ...BUILT_IN_COLUMNS, ...SYSTEM_COLUMNS[className] };
    for (const [name, field] of Object.entries(known)) this.fields.set(name, field);
  }

  /** Sets the type of a field, or records an issue when it already has another. */
  declare(name: string, field: FieldSchema, path: string, issues: SeedIssues): void {
    const known = this.fields.get(name);
    if (!known) this.fields.set(name, field);
    else if (!isSameType(known, field))
      issues.add(
        path,
        `is a ${typeName(field)} where '${name}' of ${this.className} is a ${typeName(known)}`,
      );
  }

  finish(): SeedClass {
    const { className, fields, classLevelPermissions, indexes } = this;
    return { className, fields, classLevelPermissions, indexes };
  }
}

export class DraftClasses {
  private readonly drafts = new Map<string, DraftClass>();

  of(className: string): DraftClass {
    const known = this.drafts.get(className);
    if (known) return known;
    const draft = new DraftClass(className);
    this.drafts.set(className, draft);
    return draft;
  }

  has(className: string): boolean {
    return this.drafts.has(className);
  }

  [Symbol.iterator](): Iterator<DraftClass> {
    return this.drafts.values();
  }
}

export function parseSchemas(value: unknown, classes: DraftClasses, issues: SeedIssues): void {
  issues.list(value, 'schemas').forEach((entry, index) => {
    const path = `schemas[${index}]`;
    const schema = issues.object(entry, path, ['className', 'fields', 'classLevelPermissions', 'indexes']);
    if (!isClassName(schema['className'])) {
      issues.add(`${path}.className`, 'must be a class name');
      return;
    }
    const className = canonicalClassName(schema['className']);
    if (classes.has(className)) issues.add(`${path}.className`, `'${className}' is declared twice`);
    const draft = classes.of(className);
    parseFields(schema['fields'] ?? {}, `${path}.fields`, draft, issues);
    if (schema['classLevelPermissions'] !== undefined)
      draft.classLevelPermissions = issues.object(
        schema['classLevelPermissions'],
        `${path}.classLevelPermissions`,
        PERMISSIONS,
      );
    draft.indexes = parseIndexes(schema['indexes'] ?? {}, `${path}.indexes`, issues);
  });
}

function parseFields(value: unknown, path: string, draft: DraftClass, issues: SeedIssues): void {
  for (const [name, declared] of Object.entries(issues.object(value, path))) {
    const at = `${path}.${name}`;
    const field = issues.object(declared, at, ['type', 'targetClass', 'required', 'defaultValue']);
    const { type, targetClass, required, defaultValue } = field;
    if (!isFieldName(name)) issues.add(at, 'is not a field name');
    if (typeof type !== 'string' || !TYPES.has(type)) {
      issues.add(`${at}.type`, `must be one of ${FIELD_TYPES.join(', ')}`);
      continue;
    }
    const points = type === 'Pointer' || type === 'Relation';
    if (points !== isClassName(targetClass))
      issues.add(
        `${at}.targetClass`,
        points ? 'must name the class pointed at' : 'belongs to pointers and relations',
      );
    if (required !== undefined && typeof required !== 'boolean')
      issues.add(`${at}.required`, 'must be true or false');
    const schema: FieldSchema = {
      type: type as FieldType,
      ...(points && isClassName(targetClass) && { targetClass: canonicalClassName(targetClass) }),
      ...(typeof required === 'boolean' && { required }),
      ...(defaultValue !== undefined && { defaultValue }),
    };
    draft.declare(name, schema, at, issues);
  }
}

function parseIndexes(value: unknown, path: string, issues: SeedIssues): StoredIndex[] {
  const indexes: StoredIndex[] = [];
  for (const [name, key] of Object.entries(issues.object(value, path))) {
    const at = `${path}.${name}`;
    if (!isPlainObject(key) || Object.keys(key).length === 0) {
      issues.add(at, 'must map fields to 1, -1, text, 2d, 2dsphere or hashed');
      continue;
    }
    for (const [field, kind] of Object.entries(key))
      if (!INDEX_KINDS.has(kind)) issues.add(`${at}.${field}`, 'must be 1, -1, text, 2d, 2dsphere or hashed');
    if (name !== '_id_') indexes.push({ name, key });
  }
  return indexes;
}

/** Index keys name fields, which may be known only after all rows were read. */
export function checkIndexes(classes: DraftClasses, issues: SeedIssues): void {
  for (const { className, fields, indexes } of classes) {
    for (const { name, key } of indexes) {
      for (const column of Object.keys(key)) {
        const root = column.replace(/^_p_/, '').split('.', 1)[0] as string;
        if (!fields.has(root)) issues.add(`schemas.${className}.indexes.${name}.${column}`, 'no such field');
      }
    }
  }
}
