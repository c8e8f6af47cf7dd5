import { createHash } from 'node:crypto';
import { isObjectId } from '#agent';
import type { FaultList } from './fault-list.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The same seed gives the same ids, run after run, so that examples and tests may name them. */
function seedId(className: string, index: number): string {
  const digest = createHash('sha256').update(`${className}#${index}`).digest();
  return Array.from(digest.subarray(0, 10), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** Ids of one class: given or made, each used once. */
export class SeedIds {
  private readonly seen = new Set<string>();

  constructor(
    private readonly className: string,
    private readonly faults: FaultList,
  ) {}

  idOf(given: unknown, index: number, path: string): string {
    const id = given === undefined ? seedId(this.className, index) : given;
    if (!isObjectId(id)) {
      this.faults.add(`${path}.objectId`, 'must be up to 32 letters, digits, _ or -');
      return seedId(this.className, index);
    }
    this.faults.unique(this.seen, id, `${path}.objectId`);
    return id;
  }
}
