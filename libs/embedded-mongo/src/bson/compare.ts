/** The order of values and of documents: what comparison, sorting and grouping rest on. */
export { binaryBytes, compareStrings, compareValues, typeRank, valuesEqual } from './value-order.js';
export { compileSort, sortComparator, type SortOrder } from './sort-order.js';
