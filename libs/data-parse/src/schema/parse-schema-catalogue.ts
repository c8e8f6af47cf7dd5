import { type CatalogueOptions, RenewedCatalogue } from '#data';
import type { ClassSchema, IndexSchema, SchemaSnapshot } from '#policy';
import type { ParseConnection } from '../connection/parse-connection.js';
import { MASTER_KEY } from '../connection/parse-credentials.js';
import { parseServerFault } from '../connection/parse-faults.js';
import { schemasFromRest } from './rest-schema.js';

const READ_LIMITS = { maxTimeMS: 10_000 };

/** Classes and permissions as Parse Server tells them to the master key. */
export class ParseSchemaCatalogue extends RenewedCatalogue {
  constructor(
    private readonly connection: ParseConnection,
    options?: CatalogueOptions,
  ) {
    super(options);
  }

  /** Parse Server tells them with the class. */
  indexesOf({ indexes }: ClassSchema): Promise<readonly IndexSchema[]> {
    return Promise.resolve(indexes);
  }

  protected async load(): Promise<SchemaSnapshot> {
    const { results } = await this.connection.send(
      { credentials: MASTER_KEY, method: 'GET', path: '/schemas' },
      { ...READ_LIMITS, signal: new AbortController().signal },
    );
    if (!Array.isArray(results)) throw parseServerFault('failed', 'no list of classes in the answer');
    return schemasFromRest(results);
  }
}
