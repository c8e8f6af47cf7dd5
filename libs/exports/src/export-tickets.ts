import { createHash, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import {
  type Agent,
  callerKey,
  isSameOwner,
  type Owner,
  type McpRequest,
  ServedAt,
  toOwner,
  refuse,
  isJsonObject,
} from '#core';
import { SharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import {
  ExportStore,
  type ExportOrder,
  FILE_ENDINGS,
  LINE_FORMATS,
  MEDIA_TYPES,
  type OfferedExport,
} from '#tools';

/** What an export contains and who owns it. It contains no data. */
export interface ExportTicket {
  readonly owner: Owner;
  readonly order: ExportOrder;
  /** Milliseconds since 1970, on the clock of the replicas. */
  readonly expires: number;
}

function isOwnedBy({ owner }: Pick<ExportTicket, 'owner'>, agent: Agent): boolean {
  return agent.parent === null && isSameOwner(owner, toOwner(agent));
}

/** Another version of Parley may have written it: an object that lacks a required member is no ticket. */
function readTicket(value: Readonly<Record<string, unknown>>): ExportTicket | undefined {
  const { owner, order, expires } = value;
  if (!isJsonObject(owner) || !isJsonObject(order) || typeof expires !== 'number') return undefined;
  const { className, format, columns, limit } = order;
  const isOrder =
    typeof className === 'string' &&
    LINE_FORMATS.some((known) => known === format) &&
    Array.isArray(columns) &&
    (limit === null || typeof limit === 'number');
  return isOrder ? (value as unknown as ExportTicket) : undefined;
}

const ID_BYTES = 24;

export const EXPORT_SCHEME = 'export';

/** Ids of an owner's exports, each with its expiry. */
type Open = Readonly<Record<string, number>>;
type Listed = readonly [id: string, expires: number];

export interface ExportSettings {
  /** Milliseconds for which an export can be fetched. Default an hour. */
  readonly lifetime: number;
  /** Maximum rows of an export: one that exceeds it is aborted. Default 1,000,000. */
  readonly maxRows: number;
  /** Exports that one owner may have at once; a further one replaces the oldest. Default 20. */
  readonly maxPerOwner: number;
}

/** Injection token of the settings of exports. */
export const EXPORT_SETTINGS = Symbol('settings of exports');

/** Creates exports and stores them where all replicas find them, a bounded number for each owner. */
@Injectable()
export class ExportTicketStore extends ExportStore {
  private readonly store: VersionedStore;
  private readonly now: () => number;

  /** @param servedAt holds the HTTP path of files; null: files are not served */
  constructor(
    @Inject(SharedState) { clock, exports }: Pick<SharedState, 'clock' | 'exports'>,
    @Inject(EXPORT_SETTINGS) private readonly settings: ExportSettings,
    @Inject(ServedAt) private readonly servedAt: Pick<ServedAt, 'downloads'>,
  ) {
    super();
    this.store = exports;
    this.now = clock;
  }

  get maxRows(): number {
    return this.settings.maxRows;
  }

  async promise(order: ExportOrder, { agent }: Pick<McpRequest, 'agent'>): Promise<OfferedExport> {
    // No name identifies the limits of a sub-agent: it could not be distinguished from others later.
    if (agent.parent) throw refuse.invalidArgument('a sub-agent cannot ask for delivery resource');
    const id = randomBytes(ID_BYTES).toString('base64url');
    const expires = Math.round(this.now()) + this.settings.lifetime;
    const ticket: ExportTicket = { owner: toOwner(agent), order, expires };
    await this.keep(id, ticket, agent);
    return this.offerExport(id, ticket);
  }

  /** @throws Refused when the shared state cannot be reached or has no space for it */
  private async keep(id: string, ticket: ExportTicket, agent: Agent): Promise<void> {
    try {
      // The id is listed first: an export that is not listed could not be revoked when a newer one exceeds the limit.
      await this.list(agent, id, ticket.expires);
      await this.store.create(id, { ...ticket }, this.settings.lifetime, agent.principal);
    } catch (error) {
      if (!(error instanceof SharedStateUnavailable)) throw error;
      throw refuse.exportNotStored(1 + Math.random() * 4);
    }
  }

  /** @returns `undefined` when this agent has no such export */
  async find(id: string, agent: Agent): Promise<ExportTicket | undefined> {
    const found = await this.store.find(id);
    const ticket = found && readTicket(found.value);
    return ticket && !this.hasExpired(ticket) && isOwnedBy(ticket, agent) ? ticket : undefined;
  }

  hasExpired({ expires }: Pick<ExportTicket, 'expires'>): boolean {
    return expires <= this.now();
  }

  async open(agent: Agent): Promise<readonly OfferedExport[]> {
    const found = await this.store.find(toListKey(agent));
    const ids = Object.keys(found ? openIn(found.value) : {});
    const tickets = await Promise.all(ids.map(async (id) => ({ id, ticket: await this.find(id, agent) })));
    return tickets.flatMap(({ id, ticket }) => (ticket ? [this.offerExport(id, ticket)] : []));
  }

  /** @returns false when this agent has no such export */
  async revoke(id: string, agent: Agent): Promise<boolean> {
    if (!(await this.find(id, agent))) return false;
    await this.store.remove(id);
    await this.changeList(agent, (open) => open.filter(([known]) => known !== id));
    return true;
  }

  private offerExport(id: string, { order, expires }: ExportTicket): OfferedExport {
    const folder = this.servedAt.downloads;
    return {
      uri: `${EXPORT_SCHEME}://${id}`,
      path: folder === null ? null : `${folder}/${id}`,
      fileName: toFileName(order),
      mimeType: MEDIA_TYPES[order.format],
      expiresAt: new Date(expires).toISOString(),
      maxRows: this.settings.maxRows,
    };
  }

  private async list(agent: Agent, id: string, expires: number): Promise<void> {
    const { maxPerOwner } = this.settings;
    let dropped: readonly Listed[] = [];
    await this.changeList(agent, (open) => {
      dropped = open.slice(0, Math.max(0, open.length + 1 - maxPerOwner));
      return [...open.slice(dropped.length), [id, expires]];
    });
    for (const [old] of dropped) await this.store.remove(old);
  }

  /** @param change receives the exports that have not expired, the oldest first; may be called again */
  private async changeList(
    agent: Agent,
    change: (open: readonly Listed[]) => readonly Listed[],
  ): Promise<void> {
    const key = toListKey(agent);
    const { lifetime } = this.settings;
    for (;;) {
      const found = await this.store.find(key);
      const known = Object.entries(found ? openIn(found.value) : {})
        .filter(([, expires]) => !this.hasExpired({ expires }))
        .sort(([, a], [, b]) => a - b);
      const value = { open: Object.fromEntries(change(known)) };
      const stored = found
        ? await this.store.replace(key, found.revision, value, lifetime)
        : await this.store.create(key, value, lifetime, agent.principal);
      if (stored) return;
    }
  }
}

/** Class names are identifiers, so the name contains nothing that could escape a header or a folder. */
export function toFileName({ className, format }: ExportOrder): string {
  return `${className.replace(/[^A-Za-z0-9_]/g, '')}.${FILE_ENDINGS[format]}`;
}

/** Cannot be the id of a ticket: those contain no colon. */
function toListKey(agent: Agent): string {
  return `of:${createHash('sha256').update(callerKey(agent)).digest('base64url')}`;
}

function openIn({ open }: Readonly<Record<string, unknown>>): Open {
  return open !== null && typeof open === 'object' ? (open as Open) : {};
}

/** An export as an operator sees it: its content and owner, no data, and no way to fetch it. */
export interface ListedExport {
  readonly owner: Owner;
  readonly class_name: string;
  readonly format: string;
  /** Empty: whole rows. */
  readonly columns: readonly string[];
  readonly limit: number | null;
  readonly expires_at: string;
}

/** The same store contains each owner's list of exports. */
const RECORDS_PER_EXPORT = 2;

/** For operators: the exports of all owners that can still be fetched, the latest first. Must not be shown to an agent. */
@Injectable()
export class ExportOverview {
  private readonly store: Pick<VersionedStore, 'latest'>;

  constructor(@Inject(SharedState) { exports }: Pick<SharedState, 'exports'>) {
    this.store = exports;
  }

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

export const DEFAULT_EXPORTS: ExportSettings = Object.freeze({
  lifetime: 3_600_000,
  maxRows: 1_000_000,
  maxPerOwner: 20,
});

/** Rows that are read, checked and written at once. */
export const BATCH_ROWS = 1000;
/** Seconds that one batch may take. */
export const BATCH_SECONDS = 60;
