import type { RequestContext } from '#core';

/**
 * The request that a tool passes on.
 * @deprecated Use `RequestContext`.
 */
export type CallContext = RequestContext;

/**
 * The request that the kernel answers.
 * @deprecated Use `RequestContext`.
 */
export type DispatchContext = RequestContext;
