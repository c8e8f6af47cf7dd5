import { ExportDesk, type ExportOrder, type PromisedExport } from '../export/export-desk.js';

/** Promises whatever it is asked for, and keeps the orders. */
export class SampleDesk extends ExportDesk {
  readonly maxRows = 5000;
  readonly orders: ExportOrder[] = [];

  promise(order: ExportOrder): Promise<PromisedExport> {
    this.orders.push(order);
    return Promise.resolve({
      uri: 'export://abc',
      path: '/exports/abc',
      fileName: 'Song.csv',
      mimeType: 'text/csv',
      expiresAt: '2030-01-01T00:00:00.000Z',
      maxRows: this.maxRows,
    });
  }
}
