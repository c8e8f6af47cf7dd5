/** Class declarations from Mongoose models (docs/guide/plain-mongodb.md): the subpath `@parley/server/mongoose`. */
import {
  assertOptions,
  type ClassConfig,
  type IdKind,
  isFieldName,
  isInternalField,
  type PropertyConfig,
} from '#policy';
import type { ClassDeclaration } from '@parley/server';

/** The members of a Mongoose model that are read. Mongoose itself is not imported. */
export interface MongooseModel {
  /** The name of its class. */
  readonly modelName: string;
  /** Its paths. */
  readonly schema: object;
  /** Where its documents are. */
  readonly collection: { readonly collectionName: string };
}

/** `connection.models`, or a list of models. */
export type MongooseModels = readonly MongooseModel[] | Readonly<Record<string, MongooseModel>>;

/** What is read of a schema. */
interface Schema {
  readonly paths: Readonly<Record<string, SchemaType>>;
  readonly options: { readonly timestamps?: unknown };
  /** Further schemas that documents of this one may have, by name. */
  readonly discriminators?: Readonly<Record<string, Schema>>;
  /** Of a model with discriminators, and of each of them. */
  readonly discriminatorMapping?: { readonly key: string; readonly value: unknown; readonly isRoot: boolean };
}

/** What is read of a path. */
interface SchemaType {
  readonly instance: string;
  readonly options?: { readonly ref?: unknown; readonly select?: unknown; readonly encrypt?: unknown };
  /** What Mongoose goes by: from `select`, or from code that changed the path afterwards. */
  readonly selected?: unknown;
  /** Of a subdocument, and of a list of them. */
  readonly schema?: Schema;
  /** The entries of a list: in Mongoose 9, and before. */
  readonly embeddedSchemaType?: SchemaType;
  readonly caster?: SchemaType;
  /** The values of a map. */
  readonly $__schemaType?: SchemaType;
  /** The alternatives of a union. */
  readonly schemaTypes?: readonly SchemaType[];
  readonly enumValues?: readonly (string | number | boolean | null | undefined)[];
}

const ID_KINDS: ReadonlyMap<string, IdKind> = new Map([
  ['ObjectId', 'objectId'],
  ['ObjectID', 'objectId'],
  ['String', 'string'],
  ['Number', 'number'],
  ['Int32', 'number'],
  ['Double', 'number'],
  ['UUID', 'uuid'],
] as const);

/**
 * By Mongoose's name. A path of another type is a column without a declared type: its type is read from the collection, and
 * agents cannot write it.
 */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['String', 'String'],
  ['Number', 'Number'],
  ['Int32', 'Number'],
  ['Double', 'Number'],
  ['BigInt', 'Number'],
  ['Decimal128', 'Number'],
  ['Boolean', 'Boolean'],
  ['Date', 'Date'],
  ['Buffer', 'Bytes'],
  ['Map', 'Object'],
]);

/** Entries that a list may have and still be written: their JSON is what is stored. */
const PLAIN_ENTRIES = new Set(['String', 'Number', 'Int32', 'Double', 'Boolean', 'Date', 'Array']);

/** Columns that every class has, under these names. */
const OF_EVERY_CLASS = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

/** What a mask can name: docs/guide/masking.md. */
const isNameable: (name: string) => boolean = isFieldName;
const MAX_DEPTH = 8;

/**
 * Declares a class for each model: its collection, the kind of its ids, its time stamps and columns, references and enums.
 * Paths that Mongoose does not select are not readable, in subdocuments too. Virtuals are left out. A discriminator is a class with a
 * mandatory filter on the discriminator key.
 * @param models each of them becomes a class; list those that agents may know
 * @param options `database`: the name of one of `databases` that holds them. Default: the first one
 * @throws TypeError for a model that cannot be a class
 */
export function declareClasses(
  models: MongooseModels,
  options: { readonly database?: string } = {},
): ClassDeclaration[] {
  assertOptions('declareClasses', options, { database: true });
  const { database } = options;
  const list = toList(models);
  const names = new Set(list.map(({ modelName }) => modelName));
  return list.map((model) => ({
    className: model.modelName,
    config: { ...(database !== undefined && { database }), ...readConfig(model, names) },
  }));
}

function toList(models: unknown): MongooseModel[] {
  const list: unknown[] = typeof models === 'object' && models !== null ? Object.values(models) : [undefined];
  if (list.length === 0)
    throw new TypeError(
      'declareClasses: there is no model yet: inject the models (getModelToken of @nestjs/mongoose), so that they are made before',
    );
  return list.map((model) => {
    if (isModel(model)) return model;
    throw new TypeError('declareClasses: expected connection.models or a list of Mongoose models');
  });
}

function isModel(value: unknown): value is MongooseModel {
  const model = value as Partial<MongooseModel> | null | undefined;
  return (
    (typeof value === 'function' || typeof value === 'object') &&
    typeof model?.modelName === 'string' &&
    typeof model.collection?.collectionName === 'string' &&
    typeof (model.schema as Partial<Schema> | undefined)?.paths === 'object'
  );
}

function readConfig(model: MongooseModel, names: ReadonlySet<string>): ClassConfig {
  const schema = model.schema as Schema;
  const timestamps = readTimestamps(schema);
  const columns = new Columns(names);
  const own = new Set(['_id', ...Object.values(timestamps ?? {})]);
  // A column of exactly a name comes before one that gets this name without its underscore.
  const paths = [...listPaths(schema)].sort(([one], [other]) => underscores(one) - underscores(other));
  const others = Object.values(schema.discriminators ?? {}).map(listPaths);
  for (const [name, path] of paths)
    if (!own.has(name))
      columns.add(
        name,
        path,
        others.flatMap((further) => further.get(name) ?? []),
      );
  const kind = findDiscriminator(model, columns);
  const { fields, masks, properties } = columns;
  return {
    storage: 'plain',
    collection: model.collection.collectionName,
    id: findIdKind(model),
    timestamps,
    fields,
    ...(Object.keys(masks).length > 0 && { masks }),
    ...(kind && { filters: kind }),
    properties,
  };
}

const underscores = (name: string): number => name.length - name.replace(/^_+/, '').length;

function findIdKind({ modelName, schema }: MongooseModel): IdKind {
  const id = (schema as Schema).paths['_id'];
  const kind = ID_KINDS.get(id?.instance ?? '');
  if (kind && id && !isHidden(id)) return kind;
  throw new TypeError(
    `declareClasses: ${modelName} has an _id that agents cannot be given (${id?.instance ?? 'none'}${id && isHidden(id) ? ', select: false' : ''}): ` +
      'it must be an ObjectId, a string, a number or a UUID; leave this model out of the list',
  );
}

/**
 * Both stored names, or null. A class has both or neither, and everybody may read them: one that the schema lacks has its
 * default name, and neither is declared while one of them is hidden or no date.
 */
function readTimestamps({
  paths,
  options,
  discriminators = {},
}: Schema): { createdAt: string; updatedAt: string } | null {
  const given = (options.timestamps ?? false) as boolean | Readonly<Record<string, unknown>>;
  const nameOf = (stamp: 'createdAt' | 'updatedAt'): string => {
    const named = typeof given === 'object' ? given[stamp] : undefined;
    return typeof named === 'string' && isNameable(named) ? named : stamp;
  };
  const stamps = { createdAt: nameOf('createdAt'), updatedAt: nameOf('updatedAt') };
  const stored = Object.values(stamps).flatMap((name) => paths[name] ?? []);
  const further = Object.values(discriminators).flatMap((other) =>
    Object.values(stamps).flatMap((name) => other.paths[name] ?? []),
  );
  const dates = [...stored, ...further].every((path) => path.instance === 'Date' && !isHidden(path));
  return stored.length > 0 && dates ? stamps : null;
}

/** The filter of a discriminator, on the column of its key. Null: the model is none. */
function findDiscriminator(
  { modelName, schema }: MongooseModel,
  columns: Columns,
): Readonly<Record<string, unknown>> | null {
  const mapping = (schema as Schema).discriminatorMapping;
  if (!mapping || mapping.isRoot) return null;
  const name = columns.nameOf(mapping.key);
  if (name === undefined || (typeof mapping.value !== 'string' && typeof mapping.value !== 'number'))
    throw new TypeError(
      `declareClasses: the discriminator ${modelName} cannot be distinguished from the other documents of its collection: ` +
        `its key '${mapping.key}' must be a top-level column with a text or a number`,
    );
  columns.fix(name, mapping.value);
  return { [name]: mapping.value };
}

/** The top-level columns of a schema: a dotted path is a member of a nested document without a schema of its own. */
function listPaths({ paths }: Schema): Map<string, SchemaType> {
  const top = new Map<string, SchemaType>();
  const nested = new Map<string, Record<string, SchemaType>>();
  for (const [path, type] of Object.entries(paths)) {
    const [first = path, ...rest] = path.split('.');
    // Mongoose lists the values of a map as a path of its own.
    if (rest[0] === '$*') continue;
    if (rest.length === 0) top.set(first, type);
    else nested.set(first, { ...nested.get(first), [rest.join('.')]: type });
  }
  for (const [name, members] of nested)
    top.set(name, { instance: 'Embedded', schema: { paths: members, options: {} } });
  return top;
}

/**
 * Whether Mongoose keeps the path back, by its declaration or by what code made of it. Whatever is no plain `true` hides.
 * Encrypted paths count as hidden: what the database holds of them is of no use, and a decrypting client would show it.
 */
const isHidden = ({ options, selected }: SchemaType): boolean =>
  [options?.select, selected].some((said) => said !== undefined && said !== true) || options?.encrypt != null;

const findEntries = (type: SchemaType): SchemaType | undefined => type.embeddedSchemaType ?? type.caster;

/** Whether the path, or one at any depth within it, is hidden. @param seen schemas that were looked through: one may hold itself */
function hidesAnything(type: SchemaType, seen = new Set<Schema>()): boolean {
  const { schema, $__schemaType: values, schemaTypes = [] } = type;
  const inside = [findEntries(type), values, ...schemaTypes].flatMap((one) => one ?? []);
  return (
    isHidden(type) ||
    (schema !== undefined && hidesAnyPath(schema, seen)) ||
    inside.some((one) => hidesAnything(one, seen))
  );
}

function hidesAnyPath(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  return (
    Object.values(schema.paths).some((path) => hidesAnything(path, seen)) ||
    Object.values(schema.discriminators ?? {}).some((other) => hidesAnyPath(other, seen))
  );
}

class Columns {
  readonly fields: string[] = [];
  readonly masks: Record<string, 'drop'> = {};
  readonly properties: Record<string, PropertyConfig> = {};
  private readonly names = new Map<string, string>();

  constructor(private readonly classes: ReadonlySet<string>) {}

  /** @param stored as documents have it. @param others what the discriminators of the schema say of it */
  add(stored: string, type: SchemaType, others: readonly SchemaType[]): void {
    // Mongoose's own: `__t` is the default key of discriminators, `__v` a version.
    const name = stored === '__t' ? 'kind' : stored.replace(/^_+/, '');
    const unusable = (stored.startsWith('__') && stored !== '__t') || isInternalField(stored);
    if (unusable || !isNameable(name) || OF_EVERY_CLASS.has(name) || Object.hasOwn(this.properties, name))
      return;
    if ([type, ...others].some(isHidden)) return;
    const hidden: string[] = [];
    const property = this.property(type, name, hidden);
    for (const other of others) this.property(other, name, hidden);
    // A path that no mask can name hides its column.
    const isNamed = (path: string) =>
      path.split('.').length <= MAX_DEPTH && path.split('.').every((part) => isNameable(part));
    if (hidden.includes(name) || !hidden.every(isNamed)) return;
    for (const path of hidden) this.masks[path] = 'drop';
    this.properties[name] = { ...property, ...(name !== stored && { field: stored }) };
    this.fields.push(name);
    this.names.set(stored, name);
  }

  /** The name that agents know a stored column by; undefined: they do not know it. */
  nameOf(stored: string): string | undefined {
    return this.names.get(stored);
  }

  /** The column has this one value. */
  fix(name: string, value: string | number): void {
    this.properties[name] = { ...this.properties[name], enum: { [String(value)]: null } };
  }

  /** @param hidden receives the paths below it that are not readable */
  private property(type: SchemaType, path: string, hidden: string[]): PropertyConfig {
    const target = this.findTarget(type);
    if (target !== undefined) return { type: 'Pointer', targetClass: target };
    if (type.schema)
      return {
        type: type.instance === 'Array' ? 'Array' : 'Object',
        ...this.members(type.schema, path, hidden),
      };
    if (type.instance === 'Array') return this.list(findEntries(type), path, hidden);
    // The values of a map and the alternatives of a union have no names that a mask could give.
    if (hidesAnything(type)) hidden.push(path);
    const stored = TYPES.get(type.instance);
    const values = (type.enumValues ?? []).filter((value) => value !== null && value !== undefined);
    return {
      ...(stored !== undefined && { type: stored }),
      ...(values.length > 0 && { enum: Object.fromEntries(values.map((value) => [String(value), null])) }),
    };
  }

  private list(entries: SchemaType | undefined, path: string, hidden: string[]): PropertyConfig {
    if (!entries) return {};
    // Nor have the members of a list in a list.
    if (hidesAnything(entries)) hidden.push(path);
    const target = this.findTarget(entries);
    if (target !== undefined) return { type: 'Array', targetClass: target };
    return PLAIN_ENTRIES.has(entries.instance) ? { type: 'Array' } : {};
  }

  private members(schema: Schema, path: string, hidden: string[]): { of?: Record<string, PropertyConfig> } {
    const members: Record<string, PropertyConfig> = {};
    // A schema may hold itself.
    if (path.split('.').length > MAX_DEPTH) {
      if (hidesAnyPath(schema, new Set())) hidden.push(path);
      return {};
    }
    for (const [name, type] of listPaths(schema)) {
      const below = `${path}.${name}`;
      if (isHidden(type)) {
        hidden.push(below);
        continue;
      }
      // What it hides counts although it has no name for agents itself.
      const property = this.property(type, below, hidden);
      if (isNameable(name) && !isInternalField(name)) members[name] = property;
    }
    // The members of embedded discriminators are not declared, and what they hide is hidden.
    for (const other of Object.values(schema.discriminators ?? {})) this.members(other, path, hidden);
    const tooDeep = path.split('.').length >= MAX_DEPTH;
    return Object.keys(members).length > 0 && !tooDeep ? { of: members } : {};
  }

  /** The class of a reference. One that is chosen per document, and one to a model that is no class, is an id like any other. */
  private findTarget({ options }: SchemaType): string | undefined {
    const ref = options?.ref as string | { readonly modelName?: string } | null | undefined;
    const name = typeof ref === 'string' ? ref : ref?.modelName;
    return name !== undefined && this.classes.has(name) ? name : undefined;
  }
}
