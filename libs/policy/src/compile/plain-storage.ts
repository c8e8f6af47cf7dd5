import { canonicalClassName, isClassName, isParseClassName } from '#core';
import type { FieldType, StorageForm } from '../model/class-schema.js';
import { isInternalField } from '../model/field-names.js';
import type { PlainColumn, PlainStorageRules } from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import type { ClassConfig, MemberConfig, PropertyConfig } from './policy-config.js';

/** What a column of a plain class can be declared as. */
const PLAIN_TYPES: readonly FieldType[] = [
  'String',
  'Number',
  'Boolean',
  'Date',
  'Object',
  'Array',
  'Pointer',
  'Bytes',
  'GeoPoint',
];

/** Levels of `of` below a property. */
const MAX_DEPTH = 8;

/** Collections of Parse's own, whose rows only its own rules protect. */
const PARSE_COLLECTIONS = /^(_SCHEMA|_Join:.*)$/;

/** They say of an object in JSON what it is. */
const RESERVED_NAMES = new Set(['__proto__', '__type', '__op', '_bsontype']);

const STORED_BY_US = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

/**
 * How a class of a plain collection is stored; null for a Parse class, which has none of these options.
 * @param declaredName as the configuration writes it, which is also the default of `collection`
 */
export function compilePlainStorage(
  declaredName: string,
  config: ClassConfig,
  database: StorageForm,
  issues: PolicyIssue[],
): PlainStorageRules | null {
  const path = `policy.classes.${declaredName}`;
  if ((config.storage ?? database) === 'parse') {
    issues.push(...listPlainOptions(config, path));
    return null;
  }
  const report = (option: string, message: string) => issues.push({ path: `${path}.${option}`, message });
  if (database === 'parse' && isParseClassName(declaredName))
    report(
      'storage',
      `'${canonicalClassName(declaredName)}' is a class of Parse's own: give the collection a class of another name, with collection: NAME`,
    );
  const collection = config.collection ?? declaredName;
  const issue = collectionIssue(collection);
  if (issue !== null) report('collection', issue);
  const columns = new Columns(report);
  const properties = columns.read(config.properties ?? {}, '', 0);
  const timestamps = readTimestamps(config.timestamps, columns);
  return { collection, id: config.id ?? null, timestamps, properties };
}

/** Options that only a plain class has, in the entry of a Parse class. */
function listPlainOptions(
  { collection, id, timestamps, properties }: ClassConfig,
  path: string,
): PolicyIssue[] {
  const given = [
    ...Object.entries({ collection, id, timestamps })
      .filter(([, value]) => value !== undefined)
      .map(([option]) => option),
    ...Object.entries(properties ?? {})
      .filter(([, { of: members }]) => members !== undefined)
      .map(([name]) => `properties.${name}.of`),
  ];
  return given.map((option) => ({
    path: `${path}.${option}`,
    message: `describes a plain collection, and Parse stores this class: write storage: plain beside it, or leave ${option} out`,
    related: [`${path}.storage`, 'database.storage'],
  }));
}

/** How names of collections begin that Parley makes for itself. */
const OWN_COLLECTIONS = 'parley.';

function collectionIssue(collection: string): string | null {
  if (collection.startsWith('system.') || /[$\0]/.test(collection) || collection === '')
    return `'${collection}' is no collection that can be read: write the name of one that the application stores its documents in`;
  if (collection.startsWith(OWN_COLLECTIONS))
    return `'${collection}' is a collection of Parley's own, which no agent reads: give the documents of the application another one`;
  if (isParseCollection(collection))
    return `'${collection}' is a collection of Parse's own, whose rows only Parse's rules protect: write storage: parse for its class`;
  return null;
}

function isParseCollection(collection: string): boolean {
  return PARSE_COLLECTIONS.test(collection) || (collection.startsWith('_') && isParseClassName(collection));
}

function readTimestamps(given: ClassConfig['timestamps'], columns: Columns): PlainStorageRules['timestamps'] {
  if (given === null) return null;
  const { createdAt = 'createdAt', updatedAt = 'updatedAt' } = given ?? {};
  columns.assertStoredOnce('timestamps.createdAt', createdAt);
  columns.assertStoredOnce('timestamps.updatedAt', updatedAt);
  return { createdAt, updatedAt };
}

type Report = (option: string, message: string) => void;

/** Reads declared columns, and reports those that cannot be meant. */
class Columns {
  /** Stored name → option, of the columns of the class itself. */
  private readonly stored = new Map<string, string>();

  constructor(private readonly report: Report) {}

  read(
    properties: Readonly<Record<string, MemberConfig>>,
    within: string,
    depth: number,
  ): ReadonlyMap<string, PlainColumn> {
    const columns = new Map<string, PlainColumn>();
    for (const [name, property] of Object.entries(properties)) {
      const option = within === '' ? `properties.${name}` : `${within}.${name}`;
      const column = this.column(
        name,
        typeof property === 'string' ? { type: property } : property,
        option,
        depth,
      );
      if (column) columns.set(name, column);
    }
    return columns;
  }

  /** Two names of one stored column would be two sets of rules for it. */
  assertStoredOnce(option: string, stored: string): void {
    const issue = findStoredNameIssue(stored);
    if (issue !== null) this.report(option, issue);
    const other = this.stored.get(stored);
    if (other !== undefined)
      this.report(option, `names the stored column '${stored}' of ${other}; keep one of them`);
    this.stored.set(stored, option);
  }

  private column(name: string, config: PropertyConfig, option: string, depth: number): PlainColumn | null {
    const { type, targetClass, field, of: members } = config;
    if (name.startsWith('__')) {
      this.report(option, `'${name}' is no name for agents: write another one, with field: ${name}`);
      return null;
    }
    if (depth === 0 && STORED_BY_US.has(name)) {
      if ([type, targetClass, field, members].some((one) => one !== undefined))
        this.report(option, ownColumn(name));
      return null;
    }
    if (depth === 0) this.assertStoredOnce(field === undefined ? option : `${option}.field`, field ?? name);
    else this.checkMember(option, name, field);
    this.checkType(option, config);
    if (members !== undefined && depth >= MAX_DEPTH) {
      this.report(
        `${option}.of`,
        `is nested more than ${MAX_DEPTH} levels deep; declare the outer levels alone`,
      );
      return null;
    }
    return {
      ...(type !== undefined && { type: type as FieldType }),
      ...(targetClass !== undefined && { targetClass: canonicalClassName(targetClass) }),
      ...(field !== undefined && depth === 0 && { field }),
      ...(members !== undefined && { of: this.read(members, `${option}.of`, depth + 1) }),
    };
  }

  /** Members keep their stored names: rules, masks too, that name one under another name would protect nothing. */
  private checkMember(option: string, name: string, field: string | undefined): void {
    const issue = findStoredNameIssue(field ?? name);
    if (issue !== null) this.report(option, issue);
    else if (field !== undefined && field !== name)
      this.report(
        `${option}.field`,
        `members keep their stored names: write '${field}' instead of '${name}'`,
      );
  }

  private checkType(option: string, { type, targetClass, of: members }: PropertyConfig): void {
    if (type !== undefined && !PLAIN_TYPES.includes(type as FieldType))
      this.report(`${option}.type`, `must be one of ${PLAIN_TYPES.join(', ')}`);
    if (type === 'Pointer' && targetClass === undefined)
      this.report(`${option}.targetClass`, 'is needed: the class whose _id the column holds');
    if (targetClass !== undefined && !isClassName(targetClass))
      this.report(`${option}.targetClass`, 'must be the name of a class: letters, digits and underscores');
    if (targetClass !== undefined && type !== 'Pointer' && type !== 'Array')
      this.report(
        `${option}.type`,
        'is needed with targetClass: Pointer for a reference by _id, Array for a list of them',
      );
    if (members === undefined) return;
    if (type !== 'Object' && type !== 'Array')
      this.report(
        `${option}.of`,
        'lists the members of an Object, or of the entries of an Array: write type: Object or type: Array',
      );
    if (targetClass !== undefined)
      this.report(`${option}.of`, 'stands beside targetClass: the entries are ids, which have no members');
  }
}

function ownColumn(name: string): string {
  if (name === 'objectId') return 'is the _id of a document: write id beside properties for its kind';
  return name === 'ACL'
    ? 'is a column of Parse; a plain class has none'
    : `is a time stamp: write timestamps: { ${name}: STORED_NAME } beside properties`;
}

function findStoredNameIssue(stored: string): string | null {
  if (stored === '_id') return "'_id' is objectId; no other name is needed";
  if (isInternalField(stored)) return `'${stored}' is an internal column`;
  if (stored === '' || /[.\0]/.test(stored) || stored.startsWith('$') || RESERVED_NAMES.has(stored))
    return `'${stored}' is not the name of a column: write one without dots that does not start with $`;
  return null;
}
