import { createHash } from 'node:crypto';
import { Refused, refusals } from '#agent';
import type { Column, LineWriter } from '#tools';
import type { ExportJournal, Reader } from './export-journal.js';
import type { ExportTicket } from './export-ticket.js';
import type { ExportWalk, WalkedRow, WalkStart } from './export-walk.js';
import type { TicketOffice } from './ticket-office.js';

/** A row as it stands in the file. */
export interface ExportedLine {
  readonly id: string;
  readonly text: string;
}

export interface ExportFileParts {
  readonly id: string;
  readonly ticket: ExportTicket;
  readonly reader: Reader;
  readonly columns: readonly Column[];
  readonly writer: LineWriter;
  readonly office: TicketOffice;
  readonly walk: ExportWalk;
  readonly journal: ExportJournal;
  /** Looks for the operator's canaries. @returns the phrase that was found. @throws Refused where finding one refuses */
  readonly inspect: (rows: readonly WalkedRow[]) => string | undefined;
}

/** An export as its owner reads it now. Making one reads nothing. */
export class ExportFile {
  constructor(private readonly parts: ExportFileParts) {}

  get head(): string {
    return this.parts.writer.head;
  }

  /** Differs when the file would have other columns: parts of different files must not be put together. */
  get columnsDigest(): string {
    return createHash('sha256').update(JSON.stringify(this.parts.columns)).digest('base64url').slice(0, 16);
  }

  /**
   * The lines from there on, a batch at a time. Whatever ends it is written down once it has begun.
   * @param whole whether a reader who leaves before the last line has left too early
   * @throws Refused, Unauthorized
   */
  async *lines(start: WalkStart, whole: boolean): AsyncGenerator<readonly ExportedLine[], void, undefined> {
    const { reader, ticket, walk, writer, journal, inspect } = this.parts;
    const began = performance.now();
    let rows = 0;
    let bytes = 0;
    let ended = false;
    let fault: unknown;
    let phrase: string | undefined;
    try {
      const walker = { ...reader, signal: reader.signal, proceed: () => this.stillPromised() };
      for await (const batch of walk.batches(ticket.order, walker, start)) {
        const lines = batch.map(({ id, row }) => ({ id, text: writer.line(row) }));
        phrase = inspect(batch) ?? phrase;
        rows += lines.length;
        const written = lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
        bytes += written;
        await walk.written(reader, written);
        yield lines;
      }
      ended = true;
    } catch (error) {
      fault = error;
      throw error;
    } finally {
      const { agent, correlationId } = reader;
      const milliseconds = performance.now() - began;
      ended ||= !whole && fault === undefined;
      journal.record({ agent, correlationId, rows, bytes, milliseconds, ended, fault, phrase });
    }
  }

  /** Taken back by its owner, a file stops at once; one that expires while it is read is read to its end. */
  private async stillPromised(): Promise<void> {
    const { id, ticket, reader, office } = this.parts;
    if (Date.now() >= ticket.expires || (await office.find(id, reader.agent))) return;
    throw new Refused(refusals.cancelled('revoked'));
  }
}
