import { type IdKind, isFieldName, isInternalField } from '#policy';
import { oneLine } from '#audit';
import { cutText, isParseClassName } from '#core';
import type { DatabaseSurvey, SeenType, SurveyedCollection, SurveyedColumn } from '#data-mongo';
import { classNameFor, referenceName, toStem, tenantRank, TIMESTAMP_NAMES } from './name-guesses.js';
import { isSensitiveName, sensitiveTexts } from './sensitive-guesses.js';

/** Questions to the database about references, at most. */
const MOST_QUESTIONS = 500;
/** A column refers to a collection when no more than one in this many of its values is missing there. */
const MISSING_SHARE = 10;
/** Members of a column that are declared. */
const MOST_MEMBERS = 30;

const OWN_NAMES = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);
/** Fewer numbers are no vector of a text: those of models have more. */
const SHORTEST_VECTOR = 64;

type MemberType = string | { readonly type: string; readonly of?: Readonly<Record<string, MemberType>> };

interface GuessedProperty {
  readonly type: string;
  readonly targetClass?: string;
  readonly field?: string;
  readonly of?: Readonly<Record<string, MemberType>>;
}

/** A class of the first configuration. Comments are for people; they never hold a value of a document. */
export interface GuessedClass {
  readonly className: string;
  readonly collection: SurveyedCollection | null;
  readonly id?: IdKind;
  readonly timestamps?: { readonly createdAt: string; readonly updatedAt: string } | null;
  readonly properties: Readonly<Record<string, GuessedProperty>>;
  readonly fields: readonly string[];
  readonly largeFields: readonly string[];
  /** The column that says which tenant a row belongs to; null: none was found. */
  readonly tenant: string | null;
  /** The column with a vector of numbers; null: none was found. */
  readonly vector: string | null;
  readonly comments: readonly string[];
  /** Stored names of columns that agents do not read. */
  readonly withheld: ReadonlySet<string>;
}

/** Names of the database in a comment: they are written by others. */
export const shortenName = (name: string): string => cutText(oneLine(name), 128);

/** Guesses the classes of a configuration from what a database holds. */
export class Guesses {
  readonly classes: GuessedClass[] = [];
  /** Comments on collections and classes that are not listed. */
  readonly leftOut: string[] = [];
  /** Collections that become plain classes, and the names of those. Rows of Parse are protected by Parse's rules alone. */
  private readonly names = new Map<string, string>();
  private readonly parseNames = new Set<string>();
  private questions = MOST_QUESTIONS;

  constructor(private readonly survey: DatabaseSurvey) {}

  async make(): Promise<void> {
    for (const { name, fields } of this.survey.parseClasses ?? [])
      this.addParseClass(name, [...fields.keys()]);
    const { collections } = this.survey;
    const tables = collections.filter(({ kind }) => kind !== 'view');
    // All names first: a column may refer to a collection that comes after its own.
    const listed = tables.filter((collection) => this.name(collection));
    for (const collection of listed) this.classes.push(await this.guessClass(collection));
    await this.addViews(collections.filter(({ kind }) => kind === 'view'));
  }

  private addParseClass(name: string, fields: readonly string[]): void {
    if (isParseClassName(name) || name.startsWith('_')) {
      this.leftOut.push(`${shortenName(name)}: a class of Parse's own`);
      return;
    }
    const usable = fields.filter((field) => isUsableName(field));
    const tenants = tenantsAmong(usable);
    const withheld = usable.filter((field) => isSensitiveName(field));
    const shown = usable.filter((field) => !withheld.includes(field) && !tenants.includes(field));
    if (shown.length === 0) {
      this.leftOut.push(`${shortenName(name)}: it has no column that agents should read`);
      return;
    }
    this.parseNames.add(name);
    this.classes.push({
      className: name,
      collection: null,
      properties: {},
      fields: shown,
      largeFields: [],
      tenant: tenants[0] ?? null,
      vector: null,
      comments: [
        ...withheldComment(withheld.map((field) => `${shortenName(field)} (its name)`)),
        ...tenantComment(tenants),
      ],
      withheld: new Set([...withheld, ...tenants]),
    });
  }

  /** Gives a collection the name of its class; false with a comment when it becomes none. */
  private name(collection: SurveyedCollection): boolean {
    const why = unusable(collection);
    const className =
      why === null
        ? classNameFor(collection.name, new Set([...this.names.values(), ...this.parseNames]))
        : null;
    if (className === null) {
      this.leftOut.push(
        `${shortenName(collection.name)}: ${why ?? 'its name makes no class name; give it one, with collection:'}`,
      );
      return false;
    }
    this.names.set(collection.name, className);
    return true;
  }

  /** A view is listed when all that it reads is, and when it mentions nothing that is withheld there. */
  private async addViews(views: readonly SurveyedCollection[]): Promise<void> {
    let waiting = views;
    for (let before = Infinity; waiting.length < before;) {
      before = waiting.length;
      const ready = waiting.filter((view) => view.reads.every((name) => this.names.has(name)));
      waiting = waiting.filter((view) => !ready.includes(view));
      for (const view of ready) {
        const revealed = this.findRevealed(view);
        if (revealed !== null)
          this.leftOut.push(
            `${shortenName(view.name)}: a view that mentions ${shortenName(revealed)}, which is left out`,
          );
        else if (this.name(view)) this.classes.push(await this.guessClass(view));
      }
    }
    for (const view of waiting) {
      const missing = view.reads.find((name) => !this.names.has(name)) ?? '';
      this.leftOut.push(
        `${shortenName(view.name)}: a view over ${shortenName(missing)}, which is not listed`,
      );
    }
  }

  private findRevealed(view: SurveyedCollection): string | null {
    const read = this.classes.filter(({ collection }) => collection && view.reads.includes(collection.name));
    for (const { withheld } of read) for (const name of withheld) if (view.mentions.has(name)) return name;
    return null;
  }

  private async guessClass(collection: SurveyedCollection): Promise<GuessedClass> {
    const { columns } = collection;
    const timestamps = findTimestamps(columns);
    const stamps = new Set(Object.values(timestamps === undefined ? USUAL_TIMESTAMPS : (timestamps ?? {})));
    const withheld = new Map<string, string>();
    const unnamed: string[] = [];
    const properties: Record<string, GuessedProperty> = {};
    const fields: string[] = [];
    const largeFields: string[] = [];
    const vectors: string[] = [];
    const comments: string[] = [];
    const tenants = tenantsAmong(
      columns.flatMap((column) => (isUnnamed(column, stamps) ? [] : [column.name])),
    );
    for (const column of columns) {
      const { name } = column;
      if (isUnnamed(column, stamps)) {
        if (name !== '__v' && !stamps.has(name)) unnamed.push(name);
        continue;
      }
      const isVector = isVectorColumn(column);
      if (tenants.includes(name) || isVector) {
        const type = findDeclaredType(column) ?? (isNeverSet(column) ? UNSET_TENANT : null);
        if (type) properties[name] = type;
        if (isVector) vectors.push(name);
        continue;
      }
      const why = withheldBecause(column);
      if (why !== null) {
        withheld.set(name, why);
        continue;
      }
      const reference = await this.guessReference(collection, column);
      if (reference) {
        const taken = new Set([...columns.map((one) => one.name), ...fields].filter((one) => one !== name));
        const property = propertyName(name, taken, reference.type);
        properties[property] = { ...reference, ...(property !== name && { field: name }) };
        fields.push(property);
      } else {
        const type = findDeclaredType(column);
        if (type) properties[name] = type;
        else comments.push(...createUntypedComment(column));
        fields.push(name);
        if (column.hasLongTexts) largeFields.push(name);
      }
    }
    if (collection.hasMore) comments.push('There are more columns than were looked at.');
    const [id] = collection.ids.keys();
    if (collection.kind !== 'collection')
      comments.unshift(`A ${collection.kind === 'view' ? 'view' : 'time series'}.`);
    return {
      className: this.names.get(collection.name) ?? collection.name,
      collection,
      ...(id !== undefined && id !== 'other' && { id }),
      ...(timestamps !== undefined && { timestamps }),
      properties,
      fields,
      largeFields,
      tenant: tenants[0] ?? null,
      vector: vectors[0] ?? null,
      comments: [
        ...comments,
        ...tenantComment(tenants),
        ...vectorComment(vectors),
        ...createUnnamedComment(unnamed.map(shortenName)),
        ...withheldComment([...withheld].map(([name, why]) => `${shortenName(name)} (${why})`)),
      ],
      withheld: new Set([...withheld.keys(), ...unnamed, ...tenants, ...vectors]),
    };
  }

  /** A reference is a guess that the data confirms. */
  private async guessReference(
    from: SurveyedCollection,
    column: SurveyedColumn,
  ): Promise<GuessedProperty | null> {
    const type = soleType(column.seen);
    const list = type === 'Array';
    const kind = list ? soleType(column.entries) : type;
    if (kind !== 'Id' && kind !== 'String' && kind !== 'Number') return null;
    const stem = toStem(column.name);
    const targets = this.survey.collections.filter(
      ({ name, kind: form }) => form === 'collection' && this.names.has(name),
    );
    const byName = targets.filter(({ name }) => toStem(name) === stem || stem.endsWith(toStem(name)));
    // Texts and numbers are ids of many things; ids that databases make are of one.
    const others = kind === 'Id' ? targets.filter((target) => !byName.includes(target)) : [];
    for (const target of [...byName, ...others]) {
      if (this.questions <= 0) return null;
      if (!this.survey.mayReference(from, column.name, target)) continue;
      this.questions -= 1;
      const { asked, found } = await this.survey.references(from, column.name, target);
      if (found === 0 || (asked - found) * MISSING_SHARE > asked) continue;
      return { type: list ? 'Array' : 'Pointer', targetClass: this.names.get(target.name) ?? target.name };
    }
    return null;
  }
}

/** `customer_id` becomes `customer`, unless another column has that name. */
function propertyName(name: string, taken: ReadonlySet<string>, type: string): string {
  const stem = referenceName(name);
  return type === 'Pointer' && isFieldName(stem) && !OWN_NAMES.has(stem) && !taken.has(stem) ? stem : name;
}

/** Why a collection becomes no class; null: it may. */
function unusable({ name, sampled, ids, columns, failure }: SurveyedCollection): string | null {
  if (failure !== null) return `its documents could not be read (${failure})`;
  if (name.startsWith('_') || isInternalField(name)) return 'it belongs to MongoDB or to Parse';
  if (sampled === 0 && columns.length === 0)
    return 'it is empty, so there was nothing to learn its columns from';
  if (ids.has('other')) return 'some _id in it are no ObjectId, text, number or UUID';
  if (ids.size > 1)
    return `its _id are of several kinds (${counts(ids)}); list it with the id that agents should find`;
  const stamps = listStamps(findTimestamps(columns));
  const readable = columns.some(
    (column) =>
      !isUnnamed(column, stamps) &&
      !isVectorColumn(column) &&
      tenantRank(column.name) === null &&
      withheldBecause(column) === null,
  );
  return readable ? null : 'it has no column that agents should read';
}

/** Columns that are no field under their own name: versions of Mongoose, time stamps, and names that no field has. */
const isUnnamed = ({ name }: SurveyedColumn, stamps: ReadonlySet<string>): boolean =>
  stamps.has(name) || !isUsableName(name);

/** Names of members that every object has (`constructor`) are no keys of a configuration. */
const isUsableName = (name: string): boolean =>
  isFieldName(name) && !OWN_NAMES.has(name) && !isInternalField(name) && !(name in Object.prototype);

/** Columns that may say which tenant a row belongs to, the likeliest first. */
const tenantsAmong = (names: readonly string[]): string[] =>
  names
    .filter((name) => tenantRank(name) !== null)
    .toSorted((one, other) => (tenantRank(one) ?? 0) - (tenantRank(other) ?? 0));

const isVectorColumn = (column: SurveyedColumn): boolean =>
  findType(column) === 'Array' && soleType(column.entries) === 'Number' && column.longest >= SHORTEST_VECTOR;

/** The class has no such column: nothing tells its type. */
const isAlwaysNull = ({ seen, validated }: SurveyedColumn): boolean =>
  validated === null && seen.size > 0 && [...seen.keys()].every((type) => type === 'Null');

function withheldBecause(column: SurveyedColumn): string | null {
  const { name, texts, members } = column;
  if (isSensitiveName(name)) return 'its name';
  if (isAlwaysNull(column)) return 'nothing but null was seen';
  const looks = sensitiveTexts(texts);
  if (looks !== null) return `looks like ${looks}`;
  const inner = members.find((member) => withheldMember(member));
  return inner ? `holds ${shortenName(inner.name)}` : null;
}

function withheldMember({ name, texts, members }: SurveyedColumn): boolean {
  return isSensitiveName(name) || sensitiveTexts(texts) !== null || members.some(withheldMember);
}

const withheldComment = (columns: readonly string[]): string[] =>
  columns.length === 0
    ? []
    : [`Not among fields, because they may be secret or personal, or are unknown: ${columns.join(', ')}`];

const tenantComment = ([first, ...others]: readonly string[]): string[] =>
  first === undefined
    ? []
    : [
        `Each agent reads the rows of its tenantId, by ${shortenName(first)}. Leave tenantScope out where this is no tenant.`,
        ...(others.length === 0
          ? []
          : [
              `Not among fields, because they may name the tenant as well: ${others.map(shortenName).join(', ')}`,
            ]),
      ];

const vectorComment = ([first, ...others]: readonly string[]): string[] =>
  first === undefined
    ? []
    : [
        `Not among fields, because it is a vector, which searches compare (by an index of that name): ${shortenName(first)}`,
        ...(others.length === 0
          ? []
          : [`Further vectors, not among fields: ${others.map(shortenName).join(', ')}`]),
      ];

const createUnnamedComment = (columns: readonly string[]): string[] =>
  columns.length === 0
    ? []
    : [`Not among fields, because they need another name (properties, with field): ${columns.join(', ')}`];

/** The one type that was seen beside null; null: none, or several. */
function soleType(seen: ReadonlyMap<SeenType, number>): SeenType | null {
  const types = [...seen.keys()].filter((type) => type !== 'Null');
  return types.length === 1 ? (types[0] ?? null) : null;
}

const counts = (seen: ReadonlyMap<string, number>): string =>
  [...seen].map(([type, count]) => `${type} ${count}`).join(', ');

function findType(column: SurveyedColumn): SeenType | null {
  const type = column.validated ?? soleType(column.seen);
  return type === 'Id' || type === 'Null' || type === 'Other' ? null : type;
}

/** No row of the sample names a tenant: the database alone would not tell that there is such a column. */
const UNSET_TENANT: GuessedProperty = { type: 'String' };

const isNeverSet = ({ seen }: SurveyedColumn): boolean => [...seen.keys()].every((type) => type === 'Null');

function findDeclaredType(column: SurveyedColumn): GuessedProperty | null {
  const type = findType(column);
  if (type === null) return null;
  const members = findMembers(column, type);
  return { type, ...(members && { of: members }) };
}

/** The members of an Object, and of the objects in an Array, where all of them are known. */
function findMembers(
  { entries, members, validated }: SurveyedColumn,
  type: SeenType,
): Record<string, MemberType> | null {
  if (type !== 'Object' && type !== 'Array') return null;
  if (type === 'Array' && soleType(entries) !== 'Object' && !(validated !== null && entries.size === 0))
    return null;
  const known = members.map((member) => [member.name, memberType(member)] as const);
  if (known.length === 0 || known.length > MOST_MEMBERS) return null;
  const isKey = (name: string) => isFieldName(name) && !isInternalField(name) && !(name in Object.prototype);
  if (!known.every(([name]) => isKey(name))) return null;
  const typed = known.flatMap(([name, member]) => (member === null ? [] : [[name, member] as const]));
  return typed.length === 0 ? null : Object.fromEntries(typed);
}

function memberType(member: SurveyedColumn): MemberType | null {
  const type = findType(member);
  if (type === null) return null;
  const members = findMembers(member, type);
  return members ? { type, of: members } : type;
}

function createUntypedComment({ name, seen }: SurveyedColumn): string[] {
  const types = [...seen.keys()].filter((type) => type !== 'Null');
  if (types.length > 1) return [`${shortenName(name)} holds values of several types: ${counts(seen)}.`];
  return types[0] === 'Id'
    ? [`${shortenName(name)} holds ids of documents that were not found in a listed collection.`]
    : [];
}

const USUAL_TIMESTAMPS = { createdAt: 'createdAt', updatedAt: 'updatedAt' };

const listStamps = (timestamps: GuessedClass['timestamps']): ReadonlySet<string> =>
  new Set(Object.values(timestamps === undefined ? USUAL_TIMESTAMPS : (timestamps ?? {})));

/** Undefined: they have the names that Mongoose gives them. Null: there are none. */
function findTimestamps(columns: readonly SurveyedColumn[]): GuessedClass['timestamps'] {
  const dates = new Set(columns.filter((column) => findType(column) === 'Date').map(({ name }) => name));
  const findStored = (names: readonly string[]) => names.find((name) => dates.has(name));
  const [createdAt, updatedAt] = [
    findStored(TIMESTAMP_NAMES.createdAt),
    findStored(TIMESTAMP_NAMES.updatedAt),
  ];
  if (createdAt === undefined && updatedAt === undefined) return null;
  const both = { createdAt: createdAt ?? 'createdAt', updatedAt: updatedAt ?? 'updatedAt' };
  const asUsual = both.createdAt === 'createdAt' && both.updatedAt === 'updatedAt';
  // A column of that name with other values would be taken for the time stamp.
  const misread = columns.some(({ name }) => Object.values(both).includes(name) && !dates.has(name));
  if (misread) return null;
  return asUsual ? undefined : both;
}
