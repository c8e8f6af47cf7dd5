/** Lets so many through at a time, in the order they came. */
export class Turns {
  private readonly waiting: (() => void)[] = [];
  private running = 0;

  constructor(private readonly atOnce: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= this.atOnce) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      // The turn is handed on, so that nobody can slip in between.
      if (next) next();
      else this.running -= 1;
    }
  }
}
