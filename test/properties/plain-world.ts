import { type Document, MongoClient } from 'mongodb';
import { loadSeed, type MongoConnection, parseSeed } from '#data-mongo';
import type { ClassConfig } from '#policy';
import { plainStored } from '../support/plain-seed.js';
import { allColumns, CLASS_NAMES, type ClassName, type Column, COLUMNS } from './vocabulary.js';
import type { World } from './world.js';

type Row = Readonly<Record<string, unknown>>;

/** What a seed for Parse holds. */
interface Seed {
  readonly users: readonly Row[];
  readonly objects: Readonly<Record<string, readonly Row[]>>;
}

const TYPES: Readonly<Record<Column['kind'], string>> = {
  text: 'String',
  number: 'Number',
  date: 'Date',
  place: 'GeoPoint',
  flag: 'Boolean',
  object: 'Object',
  texts: 'Array',
  pointers: 'Array',
  pointer: 'Pointer',
  relation: 'Array',
  bag: 'Object',
  pile: 'Array',
  vector: 'Array',
  code: 'String',
};

/** Plain documents hold no objects of Parse and no relations: these columns stay without values. */
const LEFT_EMPTY = new Set<Column['kind']>(['relation', 'bag', 'pile']);

/** Collections are not called as their classes, and columns not as their fields. */
const collectionOf = (className: ClassName): string => `rows of ${className}`;
const storedName = (name: string): string => `st_${name}`;

const FOLDING = { locale: 'en', strength: 2 };

/** How a class of a plain world is declared, beside its rules. */
export function plainConfig(className: ClassName, { properties = {} }: ClassConfig): ClassConfig {
  const columns = allColumns(className)
    .filter(({ name }) => name !== 'createdAt')
    .map(({ name, kind, target }) => [
      name,
      {
        ...properties[name],
        type: TYPES[kind],
        field: storedName(name),
        ...((kind === 'pointer' || kind === 'pointers') && target && { targetClass: target }),
      },
    ]);
  return {
    collection: collectionOf(className),
    id: 'string',
    timestamps: { createdAt: 'made', updatedAt: 'changed' },
    properties: Object.fromEntries(columns),
  };
}

/** Fills the database of a world. */
export async function store(
  { storage }: World,
  seed: unknown,
  { uri, name }: { readonly uri: string; readonly name: string },
  connection: MongoConnection,
): Promise<void> {
  const client = await MongoClient.connect(uri);
  try {
    // Collections that compare texts without regard to case: the names of the tenants differ in nothing else.
    for (const className of CLASS_NAMES)
      await client
        .db(name)
        .createCollection(storage === 'plain' ? collectionOf(className) : className, { collation: FOLDING });
    if (storage !== 'plain') await loadSeed(connection, parseSeed(seed));
    if (storage === 'plain') await storePlain(client, name, seed as Seed);
    for (const className of CLASS_NAMES) {
      const stored = client.db(name).collection(storage === 'plain' ? collectionOf(className) : className);
      for (const column of COLUMNS[className].filter(({ kind }) => kind === 'code')) {
        const key = storage === 'plain' ? storedName(column.name) : column.name;
        await stored.createIndex({ [key]: 1 }, { unique: true, sparse: true });
      }
    }
  } finally {
    await client.close();
  }
}

/** Writes the rows as another program would: bare ids, dates, GeoJSON. */
async function storePlain(client: MongoClient, database: string, { users, objects }: Seed): Promise<void> {
  for (const className of CLASS_NAMES) {
    const rows = className === '_User' ? users : (objects[className] ?? []);
    const documents = rows.map((row) => documentOf(className, row));
    const collection = client.db(database).collection(collectionOf(className));
    if (documents.length > 0) await collection.insertMany(documents as Document[]);
  }
}

function documentOf(className: ClassName, row: Row): Document {
  const document: Document = {
    _id: row['objectId'],
    made: new Date(String(row['createdAt'])),
    changed: new Date(String(row['updatedAt'])),
  };
  for (const { name, kind } of allColumns(className)) {
    if (name === 'createdAt' || LEFT_EMPTY.has(kind) || row[name] === undefined) continue;
    document[storedName(name)] = plainStored(row[name]);
  }
  return document;
}
