import type { ConfigIssue } from '#config';
import type { AgentDefinitionOptions, RequestContext } from '#core';
import type { SimulatedInstance } from '#instance';

/**
 * The former name of `ConfigIssue`.
 * @deprecated Use `ConfigIssue`.
 */
export type ConfigFault = ConfigIssue;

/**
 * The former name of `AgentDefinitionOptions`.
 * @deprecated Use `AgentDefinitionOptions`.
 */
export type AgentShapeOptions = AgentDefinitionOptions;

/**
 * The former name of `SimulatedInstance`.
 * @deprecated Use `SimulatedInstance`.
 */
export type RehearsalRoom = SimulatedInstance;

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
