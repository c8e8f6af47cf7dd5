import { type Document, MongoClient } from 'mongodb';
import { loadSeed, MongoConnection, parseSeed } from '#data-mongo';
import type { ClassConfig } from '#policy';
import { plainStored } from '../support/plain-seed.js';
import { allColumns, CLASS_NAMES, type ClassName, type Column, COLUMNS } from './vocabulary.js';
import type { World } from './world.js';
import { listStored, type WorldPlace } from './world-databases.js';

type Row = Readonly<Record<string, unknown>>;

/** What a seed for Parse holds. */
interface Seed {
  readonly schemas: readonly { readonly className: ClassName }[];
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

/** Fills the databases of a world. */
export async function store(world: World, seed: unknown, { uri, name }: WorldPlace): Promise<void> {
  const plain = world.storage === 'plain';
  const collectionAt = (className: ClassName) => (plain ? collectionOf(className) : className);
  const client = await MongoClient.connect(uri);
  try {
    for (const { name: database, classes, has } of listStored<Row>(world, CLASS_NAMES, name)) {
      // Collections that compare texts without regard to case: the names of the tenants differ in nothing else.
      for (const className of classes)
        await client.db(database).createCollection(collectionAt(className), { collation: FOLDING });
      const part = partOf(seed as Seed, classes, has);
      if (plain) await storePlain(client, database, part);
      else await storeParse(uri, database, part);
      for (const className of classes) {
        const stored = client.db(database).collection(collectionAt(className));
        for (const column of COLUMNS[className].filter(({ kind }) => kind === 'code')) {
          const key = plain ? storedName(column.name) : column.name;
          await stored.createIndex({ [key]: 1 }, { unique: true, sparse: true });
        }
      }
    }
  } finally {
    await client.close();
  }
}

/** What of a seed is in one database. Users, roles and sessions are where the class of the users is. */
function partOf(
  { schemas, users, objects, ...people }: Seed,
  classes: readonly ClassName[],
  has: (className: ClassName, row: Row) => boolean,
): Seed {
  const own = classes.filter((className) => className !== '_User');
  return {
    schemas: schemas.filter(({ className }) => classes.includes(className)),
    ...(classes.includes('_User') ? { users, ...people } : { users: [] }),
    objects: Object.fromEntries(
      own.map((className) => [className, (objects[className] ?? []).filter((row) => has(className, row))]),
    ),
  };
}

async function storeParse(uri: string, database: string, seed: Seed): Promise<void> {
  const connection = new MongoConnection({ uri, database, timeout: 60_000 });
  try {
    await loadSeed(connection, parseSeed(seed));
  } finally {
    await connection.close();
  }
}

/** Writes the rows as another program would: bare ids, dates, GeoJSON. */
async function storePlain(client: MongoClient, database: string, { users, objects }: Seed): Promise<void> {
  for (const [className, rows] of Object.entries({ ...objects, _User: users })) {
    const documents = rows.map((row) => documentOf(className as ClassName, row));
    const collection = client.db(database).collection(collectionOf(className as ClassName));
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
