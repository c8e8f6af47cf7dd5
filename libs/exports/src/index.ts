export { ExportOverview } from './export-tickets.js';
export { ExportsModule } from './exports.module.js';
