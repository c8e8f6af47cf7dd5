/** The refusal catalogue: every text that an agent can be given. */
export * from './general.js';
export * from './data.js';
export * from './calls.js';
