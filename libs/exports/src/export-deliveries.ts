import { Injectable } from '@nestjs/common';
import { type Agent, refusals, Refused, toOwner, refuse } from '#core';
import {
  type ListedResource,
  type ResourceCall,
  type ResourceProvider,
  ResultLimit,
  SealedText,
  StateKeys,
} from '#dispatcher';
import { type Download, type DownloadCall, Downloads } from '#streaming';
import { type EmbeddedResource, MEDIA_TYPES } from '#tools';
import { type ExportFile, ExportFiles } from './export-files.js';
import { EXPORT_SCHEME, ExportTicketStore, toFileName } from './export-tickets.js';
import { FROM_THE_START, type WalkStart } from './export-walk.js';

const ADDRESS = /^export:\/\/([A-Za-z0-9_-]{1,128})(?:\?after=([A-Za-z0-9_-]{1,2048}))?$/i;

/** Room for the address of the next part. */
export const ADDRESS_BYTES = 2_304;

/**
 * The MIME type of the content that contains the address of the next part: a separate content, which every revision supports.
 */
const NEXT_PART = 'text/uri-list';

interface Position extends WalkStart {
  readonly columns: string;
}

interface Part {
  readonly text: string;
  /** Position of the last row in the part; undefined: there is no further part. */
  readonly next: WalkStart | undefined;
}

/** Exports as resources: the first part, and in each part the address of the next one. A part consists of whole lines. */
@Injectable()
export class ExportResources implements ResourceProvider {
  readonly scheme = EXPORT_SCHEME;
  /** Seals the positions at which parts begin, which clients store. */
  private readonly sealed: SealedText;

  constructor(
    private readonly files: ExportFiles,
    private readonly tickets: ExportTicketStore,
    keys: StateKeys,
    private readonly limit: ResultLimit,
  ) {
    this.sealed = new SealedText(keys, 'parley export part');
  }

  async list(call: ResourceCall): Promise<ListedResource[]> {
    if (!this.files.permits(call)) return [];
    const open = await this.tickets.open(call.agent);
    return open.map(({ uri, fileName, mimeType, expiresAt }) => ({
      uri,
      name: fileName,
      description: `An export that can be read until ${expiresAt}`,
      mimeType,
    }));
  }

  async read(uri: string, call: ResourceCall): Promise<EmbeddedResource[] | undefined> {
    const [, id, sealed] = ADDRESS.exec(uri) ?? [];
    if (id === undefined) return undefined;
    const opened = await this.files.open(id, call);
    if (!opened) return undefined;
    const { file, ticket } = opened;
    const bound = JSON.stringify([id, toOwner(call.agent)]);
    const position = sealed === undefined ? undefined : await this.openPosition(sealed, bound);
    if (sealed !== undefined && position === undefined) return undefined;
    if (position && position.columns !== file.columnsDigest)
      throw refuse.invalidQuery('The columns of this export have changed: read it from its start');
    const most = this.limit.for(call.agent) - ADDRESS_BYTES;
    const { text, next } = await this.partFrom(file, position ?? FROM_THE_START, most);
    const part = { uri, mimeType: MEDIA_TYPES[ticket.order.format], text };
    if (!next) return [part];
    const after = await this.sealed.seal(
      JSON.stringify({ ...next, columns: file.columnsDigest } satisfies Position),
      bound,
    );
    const address = `${EXPORT_SCHEME}://${id}?after=${after}`;
    return [part, { uri: address, mimeType: NEXT_PART, text: `${address}\r\n` }];
  }

  private async openPosition(sealed: string, bound: string): Promise<Position | undefined> {
    const plain = await this.sealed.open(sealed, bound);
    return plain === undefined ? undefined : (JSON.parse(plain) as Position);
  }

  private async partFrom(file: ExportFile, start: WalkStart, most: number): Promise<Part> {
    const texts = start.after === '' ? [file.head] : [];
    let bytes = Buffer.byteLength(file.head);
    let { after, rows } = start;
    for await (const lines of file.lines(start, false)) {
      for (const { id, text } of lines) {
        bytes += Buffer.byteLength(text);
        if (bytes > most) {
          if (after === start.after) throw new Refused(tooLarge(most));
          return { text: texts.join(''), next: { after, rows } };
        }
        texts.push(text);
        after = id;
        rows += 1;
      }
    }
    return { text: texts.join(''), next: undefined };
  }
}

function tooLarge(maxBytes: number) {
  return refusals.invalidQuery(`A row of this export exceeds ${maxBytes} bytes: order fewer columns`);
}

/** Exports as files over HTTP. */
@Injectable()
export class ExportDownloads extends Downloads {
  constructor(
    private readonly files: ExportFiles,
    private readonly tickets: ExportTicketStore,
  ) {
    super();
  }

  async open(id: string, call: DownloadCall): Promise<Download | undefined> {
    const opened = await this.files.open(id, call);
    if (!opened) return undefined;
    const { order } = opened.ticket;
    return {
      fileName: toFileName(order),
      mimeType: MEDIA_TYPES[order.format],
      pieces: readPieces(opened.file),
    };
  }

  revoke(id: string, agent: Agent): Promise<boolean> {
    return this.tickets.revoke(id, agent);
  }
}

/** The headers are sent with the first batch: nothing is sent before the first rows were permitted. */
async function* readPieces(file: ExportFile): AsyncGenerator<string, void, undefined> {
  let head = file.head;
  for await (const lines of file.lines(FROM_THE_START, true)) {
    yield head + lines.map(({ text }) => text).join('');
    head = '';
  }
  if (head !== '') yield head;
}
