export { kernelOf, SmallRecords, smallTool } from './kernel-under-test.js';
export { RecordedRunner } from './recorded-runner.js';
