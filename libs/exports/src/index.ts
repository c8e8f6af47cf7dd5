export { DEFAULT_EXPORTS, EXPORT_SETTINGS, ExportOverview, type ListedExport } from './export-tickets.js';
export { ExportsModule } from './exports.module.js';
