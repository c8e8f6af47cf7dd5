import type { CallContext } from '#agent';
import type { GovernedRecords } from '#data';

/** Makes the governed door to data for one call. */
export abstract class RecordsSource {
  abstract for(context: CallContext): GovernedRecords;
}
