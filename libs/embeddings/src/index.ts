export * from './embedding-budget.js';
export * from './embedding-provider.js';
export * from './endpoint-allowlist.js';
export * from './openai-embeddings.js';
export * from './query-embeddings.js';
