import type { Refusal } from '../refusal.js';
import { invalidArgument, accessDenied, notImplemented } from './general.js';
import { listed } from './listed.js';

/** Facets are counted by the search process, before any filter of rows could hold. */
export function facetFilterUnsafe(className: string, filters: readonly string[]): Refusal {
  return accessDenied(
    'facets',
    `Facets of '${className}' cannot be counted: ${listed(filters)} cannot be carried into the counts`,
    'atlas_facet_filter_unsafe',
  );
}

export function masterAtlasRequired(): Refusal {
  return invalidArgument(
    'atlas_faceted_search needs an agent built with master_atlas: true (masterAtlas in its configuration)',
    'master_atlas',
  );
}

/** Nobody declared that the class may be searched by likeness. Said of classes that do not exist too. */
export function notSearchable(className: string): Refusal {
  return invalidArgument(
    `class '${className}' is not declared searchable; use atlas_text_search or query_class`,
    'searchable',
  );
}

/** Where some class keeps tenants apart, likeness is not searched across all of them by omission. */
export function missingTenantScope(className: string): Refusal {
  return accessDenied(
    'tenant',
    `Class '${className}' declares no tenant scope, and other classes do: it cannot be searched by likeness`,
    'missing_tenant_scope',
  );
}

/** @param alternative what the agent can do instead */
export function searchNotConfigured(alternative: string): Refusal {
  return notImplemented(
    `Atlas Search is not configured: this database has no search process (MongoDB Atlas, or a deployment with mongot). ${alternative}`,
  );
}

export function embeddingsNotConfigured(): Refusal {
  return notImplemented(
    'Text cannot be compared here: no embeddings endpoint is configured (embeddings in the configuration). ' +
      'Use find_similar with object_id, or atlas_text_search',
  );
}

/** The embeddings endpoint gave no usable answer; why is for the log. */
export function embeddingFailed(cause: string): Refusal {
  return {
    code: 'parse_error',
    gate: 'embeddings',
    message: 'Parse error: the text could not be embedded',
    cause,
  };
}

export function embeddingBudgetSpent(tokens: number, window: number, retryAfter: number): Refusal {
  const seconds = Math.max(retryAfter, 0.1);
  return {
    code: 'rate_limited',
    gate: 'embedding_budget',
    message: `Embedding budget spent (${tokens} tokens per ${window}s). Retry after ${seconds.toFixed(1)}s`,
    retryAfter: Number(seconds.toFixed(2)),
  };
}
