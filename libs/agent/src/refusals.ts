/** The refusal catalogue: every text an agent can be told. */
export * from './refusals/general.js';
export * from './refusals/classes-and-fields.js';
export * from './refusals/rights.js';
export * from './refusals/tools-and-methods.js';
export * from './refusals/limits.js';
export * from './refusals/search.js';
export * from './refusals/client.js';
