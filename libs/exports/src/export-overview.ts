import type { VersionedStore } from '#cluster';
import type { TaskOwner } from '#dispatcher';
import { readTicket } from './export-ticket.js';

/** An export as an operator sees it: what was promised and to whom, nothing of the data, and no way to fetch it. */
export interface ListedExport {
  readonly owner: TaskOwner;
  readonly class_name: string;
  readonly format: string;
  /** Empty: whole rows. */
  readonly columns: readonly string[];
  readonly limit: number | null;
  readonly expires_at: string;
}

/** Each owner's list of exports lies in the same store. */
const RECORDS_PER_EXPORT = 2;

/** For operators: exports of everybody that can still be fetched, the latest first. Never to be shown to an agent. */
export class ExportOverview {
  constructor(private readonly store: Pick<VersionedStore, 'latest'>) {}

  /** @throws SharedStateUnavailable */
  async latest(limit: number): Promise<readonly ListedExport[]> {
    const found = await this.store.latest(limit * RECORDS_PER_EXPORT);
    const tickets = found.flatMap(({ value }) => readTicket(value) ?? []);
    return tickets.slice(0, limit).map(({ owner, order, expires }) => ({
      owner,
      class_name: order.className,
      format: order.format,
      columns: order.columns.map(({ path }) => path),
      limit: order.limit,
      expires_at: new Date(expires).toISOString(),
    }));
  }
}
