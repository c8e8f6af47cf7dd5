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
    const searcher = context.meter ? new MeteredSearcher(this.searcher, context.meter) : this.searcher;
    return new DeferredSearch(
      async () => new ParleySearch(await this.records.open(context, budget), searcher),
    );
  }
}
