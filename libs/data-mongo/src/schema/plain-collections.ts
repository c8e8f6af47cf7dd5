import type { CollectionInfo, Document } from 'mongodb';
import { isPlainObject } from '#policy';
import type { MongoConnection } from '../connection/mongo-connection.js';
import { toStoreError } from '../errors.js';
import { ColumnSample } from './column-sample.js';
import { type ValidatorNode, readValidator } from './plain-columns.js';
import type { PlainClassDeclaration } from './storage-declarations.js';

/** Why a declared class does not exist for agents, or not as it was declared. */
export interface CatalogueProblem {
  readonly className: string;
  /** Of one property. Default: of the class. */
  readonly property?: string;
  readonly kind:
    | 'missing_collection'
    | 'system_collection'
    | 'undeclared_source'
    | 'collated_view'
    | 'mixed_ids'
    | 'type_conflict'
    | 'mixed_references'
    | 'unknown_target'
    | 'not_sampled'
    | 'database_away';
  /** What is wrong and what to write instead, for an operator. */
  readonly text: string;
}

/** Documents of a sample, and their bytes. */
const SAMPLE = { documents: 100, bytes: 2 * 1024 * 1024, batch: 20 };

const SAMPLED_AT_ONCE = 4;

const COMMENT = 'parley schema catalogue';

/** Milliseconds that a sample may take, and for which it is kept. */
const SAMPLE_MS = 5_000;
const SAMPLE_AGE_MS = 10 * 60 * 1000;
/** The same, while somebody looks for a name that is not known. */
const SAMPLE_AGE_FOR_NAMES_MS = 30_000;

export interface PlainReadOptions {
  readonly maxTimeMS: number;
  /** For a name that is not known yet: younger samples are read again, too. */
  readonly forNames: boolean;
  /** Name of the database. Default: that of the service. */
  readonly database?: string | undefined;
  /** Collections that Parse stores and that exist for nobody. Default none. */
  readonly guarded?: ReadonlySet<string>;
}

interface Sampled {
  readonly sample: Promise<ColumnSample | null>;
  readonly readAt: number;
}

/** A collection that a declaration names, and what it holds. */
export interface DeclaredCollection {
  readonly declaration: PlainClassDeclaration;
  readonly info: StoredCollection;
  readonly validator: ValidatorNode | null;
  readonly sample: ColumnSample | null;
}

/** Declared collections of one database that there are, and what is wrong with the others. */
export interface OpenedCollections {
  readonly collections: readonly DeclaredCollection[];
  readonly problems: readonly CatalogueProblem[];
}

/** What the database says about a collection. */
export type StoredCollection = Pick<CollectionInfo, 'name' | 'type'> & { readonly options: Document };

/** Reads the classes that Parse does not store: their collections, validators, and samples of documents. */
export class PlainClassReader {
  private samples = new WeakMap<MongoConnection, Map<string, Sampled>>();

  constructor(
    private readonly connection: MongoConnection,
    private readonly now: () => number,
  ) {}

  /** The next call reads samples again. */
  forget(): void {
    this.samples = new WeakMap();
  }

  /**
   * Opens the collections of one database.
   * @param parseClasses classes of Parse in it that exist for agents. @throws StoreError
   */
  async open(
    declarations: readonly PlainClassDeclaration[],
    parseClasses: ReadonlySet<string>,
    { maxTimeMS, forNames, database, guarded }: PlainReadOptions,
  ): Promise<OpenedCollections> {
    if (declarations.length === 0) return { collections: [], problems: [] };
    const connection = this.connection.holding({ database });
    const samples = this.samplesOf(connection);
    const problems: CatalogueProblem[] = [];
    const stored = await listStored(connection, maxTimeMS);
    if (forNames) this.forgetSamples(samples, SAMPLE_AGE_FOR_NAMES_MS);
    await this.sampleAll(
      declarations.map(({ collection }) => stored.get(collection)),
      connection,
    );
    const sources = new Set([...declarations.map(({ collection }) => collection), ...parseClasses]);
    const collections: DeclaredCollection[] = [];
    for (const declaration of declarations) {
      const info = stored.get(declaration.collection);
      const problem = problemOfCollection(declaration, info, sources, guarded);
      if (problem || !info) {
        if (problem) problems.push(problem);
        continue;
      }
      const sample = await this.findSample(info, connection);
      if (!sample) problems.push(notSampled(declaration));
      collections.push({ declaration, info, validator: readValidator(info.options), sample });
    }
    return { collections, problems };
  }

  private samplesOf(connection: MongoConnection): Map<string, Sampled> {
    let samples = this.samples.get(connection);
    if (!samples) this.samples.set(connection, (samples = new Map()));
    return samples;
  }

  private forgetSamples(samples: Map<string, Sampled>, age: number): void {
    const before = this.now() - age;
    for (const [name, { readAt }] of samples) if (readAt <= before) samples.delete(name);
  }

  /** A few at a time. */
  private async sampleAll(
    infos: readonly (StoredCollection | undefined)[],
    connection: MongoConnection,
  ): Promise<void> {
    const waiting = infos.filter((info) => info !== undefined && !isSystemCollection(info.name));
    const work = async () => {
      for (let info = waiting.shift(); info !== undefined; info = waiting.shift())
        await this.findSample(info, connection);
    };
    await Promise.all(Array.from({ length: SAMPLED_AT_ONCE }, work));
  }

  private findSample(info: StoredCollection, connection: MongoConnection): Promise<ColumnSample | null> {
    const samples = this.samplesOf(connection);
    const known = samples.get(info.name);
    if (known && this.now() - known.readAt < SAMPLE_AGE_MS) return known.sample;
    const sample = readSample(info, connection);
    samples.set(info.name, { sample, readAt: this.now() });
    sample.catch(() => samples.delete(info.name));
    return sample;
  }
}

/** The collections of a database, by name. */
async function listStored(
  { db }: MongoConnection,
  maxTimeMS: number,
): Promise<ReadonlyMap<string, StoredCollection>> {
  const listed = await db
    .listCollections({}, { nameOnly: false, authorizedCollections: true, maxTimeMS, comment: COMMENT })
    .toArray();
  return new Map(
    (listed as CollectionInfo[]).map(({ name, type, options }) => [
      name,
      { name, type, options: options ?? {} },
    ]),
  );
}

/** The newest documents where an index gives their order. Null: this collection could not be read in time. */
async function readSample(
  { name, type }: StoredCollection,
  connection: MongoConnection,
): Promise<ColumnSample | null> {
  const cursor = connection.collection(name).find<Document>(
    {},
    {
      ...(type === 'collection' && { sort: { _id: -1 } }),
      limit: SAMPLE.documents,
      batchSize: SAMPLE.batch,
      maxTimeMS: SAMPLE_MS,
      comment: COMMENT,
      raw: true,
    },
  );
  const documents: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const document of cursor as AsyncIterable<unknown>) {
      documents.push(document as Uint8Array);
      bytes += (document as Uint8Array).byteLength;
      if (bytes > SAMPLE.bytes) break;
    }
    const isWhole = documents.length < SAMPLE.documents && bytes <= SAMPLE.bytes;
    if (type === 'collection' && !isWhole) documents.push(...(await readLeastId(name, connection)));
  } catch (error) {
    const problem = toStoreError(error);
    if (problem.code === 'unavailable' || problem.code === 'cancelled') throw problem;
    return null;
  } finally {
    await cursor.close().catch(() => undefined);
  }
  return ColumnSample.of(documents);
}

/** The document with the least id, of which types come first: where it has one of another type than the newest ones have, ids are mixed. */
async function readLeastId(name: string, connection: MongoConnection): Promise<readonly Uint8Array[]> {
  const cursor = connection.collection(name).find<Document>(
    {},
    {
      sort: { _id: 1 },
      projection: { _id: 1 },
      limit: 1,
      maxTimeMS: SAMPLE_MS,
      comment: COMMENT,
      raw: true,
    },
  );
  return (await cursor.toArray()) as unknown as Uint8Array[];
}

function notSampled({ className, collection }: PlainClassDeclaration): CatalogueProblem {
  return {
    className,
    kind: 'not_sampled',
    text: `${SAMPLE.documents} documents of '${collection}' could not be read within ${SAMPLE_MS} ms: only declared columns are known; see whether the user of database.uri may read it, and whether a view reads too much`,
  };
}

function problemOfCollection(
  { className, collection }: PlainClassDeclaration,
  info: StoredCollection | undefined,
  sources: ReadonlySet<string>,
  guarded: ReadonlySet<string> = new Set(),
): CatalogueProblem | null {
  if (guarded.has(collection))
    return {
      className,
      kind: 'system_collection',
      text: `'${collection}' holds the rows of a Parse class, which its ACLs protect: read it by that class`,
    };
  if (isSystemCollection(collection))
    return {
      className,
      kind: 'system_collection',
      text: `'${collection}' belongs to MongoDB or to Parse and is never a class: remove the class, or name another collection`,
    };
  if (!info)
    return {
      className,
      kind: 'missing_collection',
      text: `there is no collection '${collection}': write its name under policy.classes.${className}.collection`,
    };
  if (info.type === 'view' && info.options['collation'])
    return {
      className,
      kind: 'collated_view',
      text: `the view '${collection}' compares texts by a collation, which no command can change, so its rows cannot be kept apart: make it without one, or remove the class`,
    };
  const undeclared = listSources(info).find((name) => !sources.has(name));
  if (undeclared === undefined) return null;
  return {
    className,
    kind: 'undeclared_source',
    text: `the view '${collection}' reads '${undeclared}', which no class declares: declare a class for it, or remove this one`,
  };
}

/** Collections of MongoDB and of Parse. */
function isSystemCollection(name: string): boolean {
  return name.startsWith('system.') || name.startsWith('_') || name.includes('$');
}

/** The collections that a view reads. */
function listSources({ type, options }: StoredCollection): readonly string[] {
  if (type !== 'view') return [];
  const sources = [String(options['viewOn'])];
  collectSources(options['pipeline'], sources);
  return sources;
}

/** A join without a name reads no collection. */
function collectSources(value: unknown, sources: string[]): void {
  if (Array.isArray(value)) {
    for (const entry of value) collectSources(entry, sources);
    return;
  }
  if (!isPlainObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const isJoin = key === '$lookup' || key === '$graphLookup' || key === '$unionWith';
    const named = isPlainObject(member) ? (member['from'] ?? member['coll']) : member;
    // An object names a collection of another database.
    if (isJoin && named !== undefined)
      sources.push(typeof named === 'string' ? named : JSON.stringify(named));
    collectSources(member, sources);
  }
}
