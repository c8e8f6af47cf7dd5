export { DEFAULT_EXPORTS, EXPORT_SETTINGS, ExportOverview, type ListedExport } from './export-tickets.js';
export { ExportRoutesModule, ExportsModule } from './exports.module.js';
