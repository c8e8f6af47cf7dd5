export { ExportDownloads, ExportResources } from './export-deliveries.js';
export { ExportFiles } from './export-files.js';
export { ExportJournal } from './export-journal.js';
export {
  DEFAULT_EXPORTS,
  ExportOverview,
  type ExportSettings,
  type ListedExport,
  ExportTicketStore,
} from './export-tickets.js';
export { ExportWalk } from './export-walk.js';
export { ExportsModule } from './exports.module.js';
