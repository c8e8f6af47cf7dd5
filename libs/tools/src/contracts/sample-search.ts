import type {
  Completions,
  CountedFacets,
  GovernedSearch,
  LikenessFilters,
  LikenessSearch,
  NearestRequest,
  ParseRow,
  SearchHit,
  TextSearchRequest,
} from '#data';

/** Found rows for testing the shape of results; rules are tested where they live. */
export class SampleSearch implements GovernedSearch {
  readonly asked: { method: string; request: unknown }[] = [];

  constructor(
    private readonly rows: readonly ParseRow[] = [],
    private readonly textFields: readonly string[] = ['title', 'body'],
  ) {}

  async text(_className: unknown, request: TextSearchRequest): Promise<SearchHit[]> {
    return this.answer('text', request);
  }

  async autocomplete(_className: unknown, request: unknown): Promise<Completions> {
    return { suggestions: ['Row 0'], hits: this.answer('autocomplete', request) };
  }

  async facets(_className: unknown, request: unknown): Promise<CountedFacets> {
    const facets = new Map([['state', [{ _id: 'live', count: 2 }]]]);
    return { total: this.rows.length, facets, hits: this.answer('facets', request) };
  }

  async likeness(className: unknown): Promise<LikenessSearch> {
    return {
      className: String(className),
      field: 'vector',
      textFields: this.textFields,
      wireName: (field) => (field === 'createdAt' || field === 'objectId' ? 'vector' : field),
      check: (filters: LikenessFilters) => void this.asked.push({ method: 'check', request: filters }),
      vectorOf: async () => [1, 0],
      nearest: async (request: NearestRequest) => this.answer('nearest', request),
    };
  }

  private answer(method: string, request: unknown): SearchHit[] {
    this.asked.push({ method, request });
    const texts = [{ value: 'Row', type: 'hit' as const }];
    return this.rows.map((row, index) => ({
      row,
      score: 0.87654 - index / 100,
      highlights: [{ path: 'title', texts }],
    }));
  }
}
