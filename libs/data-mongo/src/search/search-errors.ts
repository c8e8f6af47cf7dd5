import { MongoServerError } from 'mongodb';
import { StoreError, type StoreErrorCode } from '#data';
import { asStoreOperation } from '../errors.js';

/** How servers without a search process answer its stages; every other stage sent here is one all servers know. */
const NOT_CONFIGURED = new Set([31082, 40324, 6047401]);
const INDEX_NOT_FOUND = 27;
/** The search process answers under the code for unknown errors; only its words tell what it means. */
const FROM_THE_SEARCH_PROCESS = 8;
const INDEX_WORDS = /index .*(not found|does not exist)|no such index/i;
const PARAMETER_WORDS =
  /is required|must (be|have|hold)|cannot be|unrecognized field|indexed (with|as)|one operator|no field path/i;

function searchCodeOf(error: MongoServerError): StoreErrorCode | null {
  const code = Number(error.code);
  if (NOT_CONFIGURED.has(code)) return 'search_not_configured';
  if (code === INDEX_NOT_FOUND) return 'search_index_missing';
  if (code !== FROM_THE_SEARCH_PROCESS) return null;
  if (INDEX_WORDS.test(error.message)) return 'search_index_missing';
  return PARAMETER_WORDS.test(error.message) ? 'search_invalid' : null;
}

/** As `asStoreOperation`; what the server says about search itself is told apart from every other fault. */
export function asSearchOperation<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  return asStoreOperation(signal, async () => {
    try {
      return await work();
    } catch (error) {
      const code = error instanceof MongoServerError ? searchCodeOf(error) : null;
      throw code === null ? error : new StoreError(code, { cause: error });
    }
  });
}
