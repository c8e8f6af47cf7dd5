export { ExportDownloads } from './export-downloads.js';
export { ExportFiles } from './export-files.js';
export { ExportJournal } from './export-journal.js';
export { ExportOverview, type ListedExport } from './export-overview.js';
export { ExportResources } from './export-resources.js';
export { DEFAULT_EXPORTS, type ExportSettings } from './export-settings.js';
export { ExportWalk } from './export-walk.js';
export { TicketOffice } from './ticket-office.js';
