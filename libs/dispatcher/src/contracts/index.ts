export { kernelOf, SmallRecords, smallTool } from './kernel-under-test.js';
