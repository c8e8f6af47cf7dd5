import type { ClassSchema, FieldSchema, IdKind, PlainColumn } from '#policy';
import type { StorageChange } from '../storage/class-storage.js';
import { layOut } from '../storage/plain-storage.js';
import { ColumnSample } from './column-sample.js';
import { toPlainColumn, idKindOfNode, type IdsOf, permitsType, type ValidatorNode } from './plain-columns.js';
import type {
  CatalogueProblem,
  DeclaredCollection,
  OpenedCollections,
  StoredCollection,
} from './plain-collections.js';

export interface PlainClasses {
  readonly schemas: readonly ClassSchema[];
  readonly problems: readonly CatalogueProblem[];
  /** The ids of all of them, and of those of Parse. */
  readonly ids: ReadonlyMap<string, IdKind>;
}

/**
 * The classes of all databases. A column may refer to a class of another one.
 * @param parseClasses classes of Parse that exist for agents
 * @param away the ids of classes whose database is away, where they are declared: columns refer to them as ever
 */
export function readPlainClasses(
  opened: readonly OpenedCollections[],
  parseClasses: readonly ClassSchema[],
  away: ReadonlyMap<string, IdKind | null> = new Map(),
): PlainClasses {
  const problems = opened.flatMap((one) => one.problems);
  const collections = opened.flatMap((one) => one.collections);
  const ofParse = new Set(parseClasses.map(({ className }) => className));
  const ids = idKinds(collections, problems);
  const findIds: IdsOf = (className) =>
    ids.get(className) ?? (ofParse.has(className) ? 'string' : away.get(className));
  const schemas = collections.flatMap((collection) => {
    const id = ids.get(collection.declaration.className);
    return id ? [createSchema(collection, id, findIds, problems)] : [];
  });
  return {
    schemas,
    problems,
    ids: new Map([...[...ofParse].map((name) => [name, 'string'] as const), ...ids]),
  };
}

/** The ids of each class whose ids are of one kind. */
function idKinds(
  collections: readonly DeclaredCollection[],
  problems: CatalogueProblem[],
): ReadonlyMap<string, IdKind> {
  const kinds = new Map<string, IdKind>();
  for (const { declaration, validator, sample } of collections) {
    const { className, collection } = declaration;
    const node = validator?.members.get('_id');
    const kind =
      declaration.id ??
      (node && idKindOfNode(node)) ??
      (sample && findSampledIdKind(sample.members.get('_id')));
    if (kind) kinds.set(className, kind);
    else
      problems.push({
        className,
        kind: 'mixed_ids',
        text: `the _id of documents in '${collection}' is not of one type: write policy.classes.${className}.id (objectId, string, number or uuid)`,
      });
  }
  return kinds;
}

const NUMBERS = new Set(['other', 'long', 'decimal']);

/** Whether documents have ids that are none of the class. */
const holdsOtherIds = (sample: ColumnSample | undefined, id: IdKind): boolean =>
  [...(sample?.allKinds ?? [])].some((kind) => (id === 'number' ? !NUMBERS.has(kind) : kind !== id));

/** Null: of several kinds, or of one that cannot be written as text. An empty collection gets the ids of MongoDB. */
function findSampledIdKind(sample: ColumnSample | undefined): IdKind | null {
  if (!sample) return 'objectId';
  const { kind } = sample;
  if (kind === 'objectId' || kind === 'string' || kind === 'uuid') return kind;
  const isNumber = sample.type === 'Number' && [...sample.allKinds].every((one) => NUMBERS.has(one));
  return isNumber ? 'number' : null;
}

const EVERY_CHANGE: ReadonlySet<StorageChange> = new Set(['create', 'update', 'delete']);

/** The changes that the server permits for documents of a collection. */
function listChanges({ type, options }: StoredCollection): ReadonlySet<StorageChange> {
  if (type === 'view') return new Set();
  if (type === 'timeseries') return new Set(['create'] as const);
  return options['capped'] === true ? new Set(['create', 'update'] as const) : EVERY_CHANGE;
}

/** A column that is declared without a type, before any document has a value in it. */
const NO_TYPE: FieldSchema = { type: 'Object', origin: 'sample', seen: {} };

/** Names that a property cannot have: the store sets what they stand for. */
const BUILT_IN = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL', '_id']);

function createSchema(
  { declaration, info, validator, sample }: DeclaredCollection,
  id: IdKind,
  idsOf: IdsOf,
  problems: CatalogueProblem[],
): ClassSchema {
  const { className, timestamps } = declaration;
  const properties = [...declaration.properties].filter(([name]) => !BUILT_IN.has(name));
  const columns = new Map<string, string>();
  const fields = new Map<string, FieldSchema>([['objectId', { type: 'String' }]]);
  for (const [name, property] of properties) {
    const column = property.field ?? name;
    columns.set(name, column);
    const node = validator?.members.get(column);
    const required = validator?.required.has(column) === true;
    const field =
      toPlainColumn({ property, node, sample: sample?.members.get(column), required }, idsOf) ?? NO_TYPE;
    fields.set(name, field);
    problems.push(...problemsOfProperty(className, name, property, field, node, idsOf));
  }
  const taken = new Set([...columns.values(), ...columns.keys(), ...Object.values(timestamps ?? {})]);
  const hidden: string[] = [];
  for (const column of new Set([...(validator?.members.keys() ?? []), ...(sample?.members.keys() ?? [])])) {
    if (taken.has(column) || column === '_id') continue;
    if (!isFieldName(column, timestamps === null)) {
      if (isPath(column)) hidden.push(column);
      continue;
    }
    const required = validator?.required.has(column) === true;
    const node = validator?.members.get(column);
    const field = toPlainColumn({ node, sample: sample?.members.get(column), required }, idsOf);
    if (field) fields.set(column, field);
  }
  for (const name of ['createdAt', 'updatedAt'] as const) if (timestamps) fields.set(name, { type: 'Date' });
  const schema: ClassSchema = {
    className,
    fields,
    indexes: [],
    classLevelPermissions: null,
    storage: 'plain',
    ...(holdsOtherIds(sample?.members.get('_id'), id) && { mixedIds: true as const }),
    ...(declaration.database !== undefined && { database: declaration.database }),
  };
  return layOut(schema, {
    collection: info.name,
    id,
    columns,
    timestamps,
    hidden,
    changes: listChanges(info),
    watchable: info.type !== 'view' && info.type !== 'timeseries',
  });
}

/** Names with a leading underscore stay inside the store. A class without time stamps may have columns of their names. */
function isFieldName(name: string, isUnstamped: boolean): boolean {
  const isStamp = name === 'createdAt' || name === 'updatedAt';
  return !name.startsWith('_') && (!BUILT_IN.has(name) || (isStamp && isUnstamped)) && isPath(name);
}

/** A name that a stage can refer to. */
const isPath = (name: string): boolean => name !== '' && !name.includes('.') && !name.startsWith('$');

function problemsOfProperty(
  className: string,
  property: string,
  { targetClass, field: column = property }: PlainColumn,
  field: FieldSchema,
  node: ValidatorNode | undefined,
  idsOf: IdsOf,
): CatalogueProblem[] {
  const place = { className, property };
  const target = targetClass === undefined ? undefined : idsOf(targetClass);
  if (targetClass !== undefined && target === undefined)
    return [
      {
        ...place,
        kind: 'unknown_target',
        text: `'${property}' refers to ${targetClass}, which is no class here: declare it, or leave targetClass out`,
      },
    ];
  // It is not known while the database of the target is away.
  if (field.mixedIds && target !== null)
    return [
      {
        ...place,
        kind: 'mixed_references',
        text: `'${property}' holds some ids in another form than ${String(targetClass)} has, such as texts beside ObjectIds; conditions match both, at two searches of an index, and every pipeline converts the column: store them all in the form of the target`,
      },
    ];
  if (field.origin !== 'declared' || permitsType(field, node, target ?? undefined)) return [];
  return [
    {
      ...place,
      kind: 'type_conflict',
      text: `'${property}' is declared a ${field.type}, but the validator of the collection says that '${column}' is a ${String(node?.kind ?? node?.type)}: make them agree`,
    },
  ];
}
