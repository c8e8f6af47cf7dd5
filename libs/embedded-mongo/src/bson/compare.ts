/** The order of values and of documents: what comparison, sorting and grouping rest on. */
export { compareStrings, compareValues, valuesEqual } from './value-order.js';
export { compileElementSort, compileSort } from './sort-order.js';
export { typeRank } from './type-name.js';
