import { type FieldSchema, type FieldType, type IdKind, type PlainColumn, isPlainObject } from '#policy';
import { findKind, isCertain, type StoredKind, withKind } from '../storage/plain-scalars.js';
import type { ColumnSample } from './column-sample.js';

/** The types of a `$jsonSchema`, by their names in `bsonType` and `type`. */
const VALIDATOR_TYPES: Readonly<Record<string, readonly [FieldType, StoredKind | null]>> = {
  string: ['String', 'string'],
  objectId: ['String', 'objectId'],
  int: ['Number', 'int'],
  long: ['Number', 'long'],
  double: ['Number', 'double'],
  decimal: ['Number', 'decimal'],
  number: ['Number', null],
  integer: ['Number', null],
  bool: ['Boolean', 'bool'],
  boolean: ['Boolean', 'bool'],
  date: ['Date', 'date'],
  object: ['Object', 'document'],
  array: ['Array', null],
  binData: ['Bytes', 'binary'],
};

/** What the validator of a collection says about a document, or about a column. */
export interface ValidatorNode {
  readonly type: FieldType | null;
  readonly kind: StoredKind | null;
  readonly nullable: boolean;
  readonly members: ReadonlyMap<string, ValidatorNode>;
  /** Of a list, unless they are documents with known members. */
  readonly entries?: ValidatorNode;
  readonly required: ReadonlySet<string>;
  /** Whether the server refuses every document that does not fit. */
  readonly strict: boolean;
}

/** The `$jsonSchema` of the options of a collection; null: it has none. */
export function readValidator(options: Readonly<Record<string, unknown>>): ValidatorNode | null {
  const { validator, validationLevel = 'strict', validationAction = 'error' } = options;
  const schema = isPlainObject(validator) ? validator['$jsonSchema'] : undefined;
  const strict = validationLevel === 'strict' && validationAction === 'error';
  return isPlainObject(schema) ? readNode(schema, 0, strict) : null;
}

const MAX_DEPTH = 8;

const readList = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

function readNode(schema: Readonly<Record<string, unknown>>, depth: number, strict: boolean): ValidatorNode {
  const names = readList(schema['bsonType'] ?? schema['type']).map(String);
  const types = names.filter((name) => name !== 'null').map((name) => VALIDATOR_TYPES[name]);
  const kinds = new Set(types.map((type) => type?.[1] ?? null));
  const fieldTypes = new Set(types.map((type) => type?.[0] ?? null));
  const [type = null] = fieldTypes.size === 1 ? fieldTypes : [];
  const [kind = null] = kinds.size === 1 ? kinds : [];
  const items =
    isPlainObject(schema['items']) && depth < MAX_DEPTH ? readNode(schema['items'], depth + 1, strict) : null;
  const inside = type === 'Array' && items ? items : null;
  return {
    type,
    kind: inside ? inside.kind : kind,
    nullable: names.includes('null'),
    members: inside ? inside.members : readMembers(schema, depth, strict),
    strict,
    ...(inside && inside.members.size === 0 && { entries: inside }),
    required: new Set(readList(schema['required']).filter((name) => typeof name === 'string')),
  };
}

function readMembers(
  schema: Readonly<Record<string, unknown>>,
  depth: number,
  strict: boolean,
): Map<string, ValidatorNode> {
  const { properties } = schema;
  if (!isPlainObject(properties) || depth >= MAX_DEPTH) return new Map();
  return new Map(
    Object.entries(properties).map(([name, member]) => [
      name,
      readNode(isPlainObject(member) ? member : {}, depth + 1, strict),
    ]),
  );
}

function fieldOfNode(node: ValidatorNode | undefined): FieldSchema | null {
  if (!node || node.type === null) return null;
  const members = [...node.members].flatMap(([name, member]) => {
    const field = fieldOfNode(member);
    return field ? [[name, field] as const] : [];
  });
  const { type, kind } = node;
  const entries = fieldOfNode(node.entries);
  return withKind(
    {
      type,
      ...(members.length > 0 && { members: new Map(members) }),
      ...(entries && { entries }),
      origin: 'validator',
    },
    kind,
    node.strict,
  );
}

export interface KnownColumn {
  readonly property?: PlainColumn | undefined;
  readonly node?: ValidatorNode | undefined;
  readonly sample?: ColumnSample | undefined;
  readonly required?: boolean;
}

/** The ids of a class that a reference may target; null: they are not known now; undefined: there is no such class. */
export type IdsOf = (className: string) => IdKind | null | undefined;

/** A column as the first source describes it that knows it: declaration, validator, sample. Null: none does. */
export function toPlainColumn(
  { property, node, sample, required }: KnownColumn,
  idsOf: IdsOf,
): FieldSchema | null {
  const known = toKnownField(node, sample);
  const declared = toDeclaredField(property, known, idsOf, sample);
  const field = declared ?? known;
  if (!field) return null;
  return withKind(
    { ...field, ...(required && !node?.nullable && { required: true }) },
    findKind(field),
    isCertain(field),
  );
}

/** A validator that leaves the kind open is completed by the sample. */
function toKnownField(node: ValidatorNode | undefined, sample: ColumnSample | undefined): FieldSchema | null {
  const validated = fieldOfNode(node);
  const sampled = sample?.field('sample') ?? null;
  if (!validated || !sampled) return validated ?? sampled;
  if (node?.kind === 'binary' && sample?.kind === 'uuid')
    return withKind({ type: 'String', origin: 'validator' }, 'uuid');
  const isOpen = node?.kind === null && sampled.type === validated.type;
  const members = validated.members ?? (isOpen ? sampled.members : undefined);
  const entries = validated.entries ?? (isOpen && !members ? sampled.entries : undefined);
  return withKind(
    { ...validated, ...(members && { members }), ...(entries && { entries }) },
    isOpen ? findKind(sampled) : findKind(validated),
    isCertain(validated) && holdsOnly(node?.kind, sample),
  );
}

/** Documents that are older than the validator may be of another kind. */
function holdsOnly(kind: StoredKind | null | undefined, sample: ColumnSample | undefined): boolean {
  const seen = [...(sample?.allKinds ?? [])].flatMap((one) =>
    one === 'list' ? [...(sample?.list?.allKinds ?? [])] : [one],
  );
  return seen.every((one) => one === kind || (one === 'other' && (kind === 'int' || kind === 'double')));
}

function toDeclaredField(
  property: PlainColumn | undefined,
  known: FieldSchema | null,
  idsOf: IdsOf,
  sample?: ColumnSample,
): FieldSchema | null {
  if (!property) return null;
  const { targetClass, of } = property;
  const type =
    property.type ?? (targetClass === undefined ? undefined : 'Pointer') ?? (of ? 'Object' : undefined);
  if (type === undefined) return null;
  const ids = targetClass === undefined ? undefined : idsOf(targetClass);
  // A reference to a class that does not exist here is shown as the id that it is.
  if (targetClass !== undefined && ids === undefined)
    return known ?? { type: type === 'Array' ? type : 'String' };
  const target = ids === null ? guessIds(known) : ids;
  const members = of && listDeclaredMembers(of, known?.members, idsOf, sample);
  return withKind(
    {
      type,
      ...(targetClass !== undefined && { targetClass }),
      ...(members ? { members } : known?.members && { members: known.members }),
      ...(!members &&
        type === 'Array' &&
        target === undefined &&
        known?.entries && { entries: known.entries }),
      ...(mayHoldOtherIds(ids, target, sample) && { mixedIds: true as const }),
      origin: 'declared',
    },
    target ?? findKind(known ?? undefined),
    isCertain(known ?? undefined) && (target === undefined || target === findKind(known ?? undefined)),
  );
}

/** The ids of a target that is away, by the references to it. */
function guessIds(known: FieldSchema | null): IdKind {
  const kind = findKind(known ?? undefined);
  if (kind === 'string' || kind === 'uuid') return kind;
  return known?.type === 'Number' ? 'number' : 'objectId';
}

/** While the ids of the target are not known, conditions match both forms: a filter must not miss a row that it forbids. */
function mayHoldOtherIds(
  ids: IdKind | null | undefined,
  target: IdKind | undefined,
  sample: ColumnSample | undefined,
): boolean {
  if (target === undefined) return false;
  if (ids === null) return target === 'objectId' || target === 'string';
  return sample !== undefined && holdsOtherIds(sample, target);
}

/** Whether a reference, or a list of them, holds ids as ObjectIds where they are texts, or as texts where they are not. */
function holdsOtherIds(sample: ColumnSample, target: IdKind): boolean {
  const kinds = new Set([...sample.allKinds, ...(sample.list?.allKinds ?? [])]);
  return (['objectId', 'string'] as const).some((kind) => kind !== target && kinds.has(kind));
}

function listDeclaredMembers(
  of: ReadonlyMap<string, PlainColumn>,
  known: ReadonlyMap<string, FieldSchema> | undefined,
  idsOf: IdsOf,
  sample: ColumnSample | undefined,
): ReadonlyMap<string, FieldSchema> {
  const { members: sampled } = sample?.list ?? sample ?? {};
  const members = new Map(known);
  for (const [name, property] of of) {
    const field =
      toDeclaredField(property, known?.get(name) ?? null, idsOf, sampled?.get(name)) ?? known?.get(name);
    if (field) members.set(name, field);
  }
  return members;
}

/** Whether a validator permits values of a declared type. */
export function permitsType(
  declared: FieldSchema,
  node: ValidatorNode | undefined,
  ids: IdKind | undefined,
): boolean {
  if (!node || node.type === null) return true;
  if (declared.type === 'Pointer')
    return ids === undefined || node.kind === null || idKindOfNode(node) === ids;
  if (declared.type === 'GeoPoint') return node.type === 'Object' || node.type === 'Array';
  if (declared.type === 'Polygon') return node.type === 'Object';
  if (declared.type === 'File') return node.type === 'String';
  return declared.type === node.type;
}

/** The ids that a validator permits; null: it does not say. */
export function idKindOfNode({ type, kind }: ValidatorNode): IdKind | null {
  if (kind === 'objectId' || kind === 'string') return kind;
  if (type === 'Number') return 'number';
  return kind === 'binary' ? 'uuid' : null;
}
