import type { Agent } from '#agent';
import { MEDIA_TYPES } from '#tools';
import { type Download, type DownloadCall, Downloads } from '#streaming';
import type { ExportFile } from './export-file.js';
import type { ExportFiles } from './export-files.js';
import { FROM_THE_START } from './export-walk.js';
import { fileNameOf, type TicketOffice } from './ticket-office.js';

/** Exports as files over HTTP. */
export class ExportDownloads extends Downloads {
  constructor(
    private readonly files: ExportFiles,
    private readonly office: TicketOffice,
  ) {
    super();
  }

  async open(id: string, call: DownloadCall): Promise<Download | undefined> {
    const opened = await this.files.open(id, call);
    if (!opened) return undefined;
    const { order } = opened.ticket;
    return {
      fileName: fileNameOf(order),
      mimeType: MEDIA_TYPES[order.format],
      pieces: piecesOf(opened.file),
    };
  }

  revoke(id: string, agent: Agent): Promise<boolean> {
    return this.office.revoke(id, agent);
  }
}

/** The head goes with the first batch: nothing is sent before the first rows were permitted. */
async function* piecesOf(file: ExportFile): AsyncGenerator<string, void, undefined> {
  let head = file.head;
  for await (const lines of file.lines(FROM_THE_START, true)) {
    yield head + lines.map(({ text }) => text).join('');
    head = '';
  }
  if (head !== '') yield head;
}
