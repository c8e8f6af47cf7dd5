interface Waiting {
  readonly principal: string;
  readonly begin: (ends: () => void) => void;
}

/** One at a time; among those who wait, whoever had the last turn comes after the others. */
export class Turns {
  private readonly waiting: Waiting[] = [];
  private running = false;
  private last: string | undefined;

  /** Resolves when it is this principal's turn, with what ends it. */
  next(principal: string): Promise<() => void> {
    return new Promise((begin) => {
      this.waiting.push({ principal, begin });
      this.advance();
    });
  }

  private advance(): void {
    if (this.running) return;
    const another = this.waiting.findIndex(({ principal }) => principal !== this.last);
    const [next] = this.waiting.splice(Math.max(another, 0), 1);
    if (!next) return;
    this.running = true;
    this.last = next.principal;
    let ended = false;
    next.begin(() => {
      if (ended) return;
      ended = true;
      this.running = false;
      this.advance();
    });
  }
}
