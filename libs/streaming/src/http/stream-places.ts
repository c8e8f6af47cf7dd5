import type { Reply } from '../message.js';
import { serverBusy, streamShareTaken } from './refusals.js';

/** The part of the places that one principal may hold. */
const PRINCIPAL_SHARE = 1 / 4;

/** Why a principal gets no place: there is none, or it holds its share of them. */
type PlaceLack = 'full' | 'share';

/** The places of one kind of streams in this process. Each principal has a share, so that none of them takes all places. */
export class StreamPlaces {
  /** Places that one principal may hold. */
  readonly share: number;
  private readonly held = new Map<string, number>();
  private taken = 0;

  /** @param total null: unbounded */
  constructor(private readonly total: number | null) {
    this.share = total === null ? Infinity : Math.max(1, Math.floor(total * PRINCIPAL_SHARE));
  }

  get open(): number {
    return this.taken;
  }

  /** @returns null when the principal may open another stream */
  findLack(principal: string): PlaceLack | null {
    if (this.total !== null && this.taken >= this.total) return 'full';
    return (this.held.get(principal) ?? 0) >= this.share ? 'share' : null;
  }

  /** The caller has called `findLack`. @returns a function that gives the place back; it is called once */
  take(principal: string): () => void {
    this.taken += 1;
    this.held.set(principal, (this.held.get(principal) ?? 0) + 1);
    return () => {
      this.taken -= 1;
      const left = (this.held.get(principal) ?? 0) - 1;
      if (left > 0) this.held.set(principal, left);
      else this.held.delete(principal);
    };
  }
}

/** @returns the refusal of a stream that may not be opened; null: it may */
export function refuseStream(places: StreamPlaces, principal: string, id: unknown): Reply | null {
  const lack = places.findLack(principal);
  if (lack === 'share') return streamShareTaken(places.share, id);
  return lack && serverBusy(id);
}
