export interface EmbeddingBudgetOptions {
  /** Estimated tokens per window. */
  readonly tokens: number;
  /** Seconds. */
  readonly window: number;
}

interface Spending {
  readonly at: number;
  readonly tokens: number;
}

/** Whose budgets are remembered; the longest idle is forgotten first. */
const MAX_KEYS = 10_000;

/** What each tenant may spend on embeddings in a sliding window, in this process. */
export class EmbeddingBudget {
  private readonly spent = new Map<string, Spending[]>();

  constructor(
    readonly options: EmbeddingBudgetOptions,
    private readonly now: () => number = () => performance.now() / 1000,
  ) {}

  /** Whether a text of that many tokens could ever be paid for. */
  covers(tokens: number): boolean {
    return tokens <= this.options.tokens;
  }

  /** Spends, or tells after how many seconds it could; null when it was spent. */
  spend(key: string, tokens: number): number | null {
    const { tokens: most, window } = this.options;
    const at = this.now();
    const recent = (this.spent.get(key) ?? []).filter((one) => one.at > at - window);
    let over = recent.reduce((sum, one) => sum + one.tokens, 0) + tokens - most;
    this.remember(key, over > 0 ? recent : [...recent, { at, tokens }]);
    if (over <= 0) return null;
    for (const one of recent) {
      over -= one.tokens;
      if (over <= 0) return one.at + window - at;
    }
    return window;
  }

  private remember(key: string, spendings: Spending[]): void {
    this.spent.delete(key);
    this.spent.set(key, spendings);
    if (this.spent.size <= MAX_KEYS) return;
    const idle = this.spent.keys().next().value;
    if (idle !== undefined) this.spent.delete(idle);
  }
}
