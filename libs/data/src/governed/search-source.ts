import type { CallContext } from '#agent';
import type { GovernedSearch } from '../governed-search.js';
import { MeteredSearcher } from '../metering/metered-searcher.js';
import type { RecordSearcher } from '../record-search.js';
import { DeferredSearch } from './deferred-doors.js';
import type { CallBudget } from './operation.js';
import { ParleySearch } from './parley-search.js';
import type { GovernedRecordsSource } from './records-source.js';

/** Makes the governed search for a call. */
export class GovernedSearchSource {
  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly searcher: RecordSearcher,
  ) {}

  /** Nothing is read until the first use. */
  for(context: CallContext, budget: CallBudget): GovernedSearch {
    return new DeferredSearch(async () => {
      const parts = await this.records.open(context, budget);
      const searcher = this.searcher.forCall(parts.call);
      return new ParleySearch(parts, new MeteredSearcher(searcher, parts.metering));
    });
  }
}
