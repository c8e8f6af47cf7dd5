export { kernelOf } from './kernel-under-test.js';
