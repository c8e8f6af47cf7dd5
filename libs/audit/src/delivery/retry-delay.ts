const SHORTEST = 250;
const LONGEST = 30_000;

/** Milliseconds before each next attempt: doubled each time, and never the same for all replicas. */
export class RetryDelay {
  private failures = 0;

  next(): number {
    const delay = Math.min(SHORTEST * 2 ** this.failures, LONGEST);
    this.failures = Math.min(this.failures + 1, 16);
    return delay * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.failures = 0;
  }
}

/** The work's own end, or after `milliseconds` nothing: the work goes on. */
export async function atMost<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
