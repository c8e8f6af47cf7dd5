import type { CallContext } from '#agent';
import type { Column } from '../shaping/text-formats.js';
import type { LineFormat } from './line-formats.js';

/** Rows of a class to be exported later, as the caller asked for them: judged again whenever they are read. */
export interface ExportOrder {
  readonly className: string;
  readonly format: LineFormat;
  readonly where?: unknown;
  readonly keys?: unknown;
  readonly include?: unknown;
  /** As they were asked for; none: the readable fields of the class, at the time of reading. */
  readonly columns: readonly Column[];
  /** Rows at most; null: all of them. */
  readonly limit: number | null;
}

/** An export that can be fetched. */
export interface PromisedExport {
  /** `export://` and an id that cannot be guessed. */
  readonly uri: string;
  /** Where the HTTP service answers for it; null: nowhere. */
  readonly path: string | null;
  readonly fileName: string;
  readonly mimeType: string;
  /** ISO 8601. */
  readonly expiresAt: string;
  /** Rows that no export goes beyond. */
  readonly maxRows: number;
}

/** Takes orders for exports that are read later, by whoever gave the order and by nobody else. */
export abstract class ExportDesk {
  /** Rows that no export goes beyond. */
  abstract readonly maxRows: number;
  /** @throws Refused for a caller that could not come back for it */
  abstract promise(order: ExportOrder, call: Pick<CallContext, 'agent'>): Promise<PromisedExport>;
}
