/** What happened after some point. */
export interface ChangesSince {
  /** Each row once; without those that were forgotten. */
  readonly ids: readonly string[];
  /** Every change made a new row, and none was forgotten: no row can have gone. */
  readonly onlyCreated: boolean;
  readonly gap: boolean;
}

interface Change {
  readonly objectId: string;
  readonly created: boolean;
}

/** The last changes of a class, by number: bounded, however many come in. */
export class ChangedRows {
  private readonly changes: (Change | undefined)[];
  private count = 0;
  private lastGap = 0;

  /** @param capacity changes remembered; of earlier ones only the number is known */
  constructor(private readonly capacity = 10_000) {
    this.changes = [];
  }

  /** How many changes there were: the number of the last one. */
  get last(): number {
    return this.count;
  }

  add(change: Change): void {
    this.changes[this.count % this.capacity] = change;
    this.count += 1;
  }

  /** Changes may have been missed. */
  addGap(): void {
    this.changes[this.count % this.capacity] = undefined;
    this.count += 1;
    this.lastGap = this.count;
  }

  since(number: number): ChangesSince {
    const first = Math.max(number, this.count - this.capacity);
    const ids = new Set<string>();
    let onlyCreated = first === number;
    for (let at = first; at < this.count; at += 1) {
      const change = this.changes[at % this.capacity];
      if (change) ids.add(change.objectId);
      onlyCreated &&= change?.created === true;
    }
    return { ids: [...ids], onlyCreated, gap: this.lastGap > number };
  }
}
