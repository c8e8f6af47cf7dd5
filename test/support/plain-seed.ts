import { type Document, MongoClient } from 'mongodb';
import { type Service, startDatabase, startService } from './service.js';

type Row = Readonly<Record<string, unknown>>;

interface SeedClass {
  readonly className: string;
  readonly fields: Readonly<Record<string, { readonly type: string; readonly targetClass?: string }>>;
}

/** What of a seed for Parse a program without Parse could have written as well. */
export interface PlainSeed {
  readonly schemas: readonly SeedClass[];
  readonly objects: Readonly<Record<string, readonly Row[]>>;
}

interface Rules {
  readonly hidden?: boolean;
  readonly fields?: readonly string[];
  readonly properties?: Readonly<Record<string, Row>>;
}

/** Collections are not called as their classes, and columns not as their fields. */
const collectionOf = (className: string): string => `rows of ${className}`;
const columnOf = (field: string): string => `st_${field}`;
const TIMES = { createdAt: 'made', updatedAt: 'changed' };

/** A value of Parse's JSON as another program stores it: bare ids, dates, GeoJSON. */
export function plainStored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainStored);
  if (value === null || typeof value !== 'object') return value;
  const { __type: type, ...members } = value as Row;
  switch (type) {
    case 'Pointer':
      return members['objectId'];
    case 'Date':
      return new Date(String(members['iso']));
    case 'GeoPoint':
      return { type: 'Point', coordinates: [members['longitude'], members['latitude']] };
    default:
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainStored(member)]));
  }
}

/** Fields that need no Parse. */
const fieldsOf = ({ fields }: SeedClass) =>
  Object.entries(fields).filter(([, { type }]) => type !== 'Relation');

function plainRules(schema: SeedClass, { fields, properties = {}, ...rules }: Rules): Row {
  const own = fieldsOf(schema);
  return {
    ...rules,
    collection: collectionOf(schema.className),
    id: 'string',
    timestamps: TIMES,
    ...(fields && { fields: fields.filter((name) => schema.fields[name]?.type !== 'Relation') }),
    properties: Object.fromEntries(
      own.map(([name, field]) => [name, { ...properties[name], ...field, field: columnOf(name) }]),
    ),
  };
}

function plainDocument(schema: SeedClass, row: Row): Document {
  const at = new Date((row['createdAt'] as string | undefined) ?? '2025-01-01T00:00:00.000Z');
  const columns = fieldsOf(schema).flatMap(([name]) =>
    row[name] === undefined ? [] : [[columnOf(name), plainStored(row[name])] as const],
  );
  return {
    _id: row['objectId'],
    [TIMES.createdAt]: at,
    [TIMES.updatedAt]: at,
    ...Object.fromEntries(columns),
  };
}

/** A service for the classes of a seed, whose rows are stored as a program without Parse would. Users and roles are left out. */
export async function startPlainService(
  { schemas, objects }: PlainSeed,
  config: { readonly policy: { readonly classes: Readonly<Record<string, Rules>> } },
): Promise<Service> {
  const database = await startDatabase({ schemas: [] });
  const uri = new URL(database.uri);
  uri.pathname = '/plain';
  const client = await MongoClient.connect(uri.href);
  try {
    for (const schema of schemas) {
      const collection = await client.db().createCollection(collectionOf(schema.className));
      const rows = objects[schema.className] ?? [];
      if (rows.length > 0) await collection.insertMany(rows.map((row) => plainDocument(schema, row)));
    }
  } finally {
    await client.close();
  }
  const classes = schemas.map((schema) => [
    schema.className,
    plainRules(schema, config.policy.classes[schema.className] ?? {}),
  ]);
  const service = await startService({
    config: {
      ...config,
      database: { uri: uri.href, storage: 'plain' },
      policy: { ...config.policy, unlistedClasses: 'refuse', classes: Object.fromEntries(classes) },
    },
  });
  return {
    ...service,
    stop: async () => {
      const code = await service.stop();
      await database.stop();
      return code;
    },
  };
}
