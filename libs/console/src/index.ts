export { CallStatistics } from './call-statistics.js';
export { CONSOLE_IMPORTS, type ConsoleHost, ConsoleModule } from './console.module.js';
export { LiveRecords } from './live-records.js';
export { sumUsage, type SummedUsage, usageCsv } from './usage.js';
