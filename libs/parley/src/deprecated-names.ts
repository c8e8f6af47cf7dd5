import type { ConfigIssue } from '#config';
import type { AgentDefinitionOptions, RequestContext, SubAgentRule } from '#core';
import { ProtocolError, type SimulatedCall } from '#dispatcher';
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

/**
 * The former name of `ProtocolError`.
 * @deprecated Use `ProtocolError`.
 */
export const ProtocolFault = ProtocolError;

/**
 * The former name of `ProtocolError`.
 * @deprecated Use `ProtocolError`.
 */
export type ProtocolFault = ProtocolError;

/**
 * The former name of `SimulatedCall`.
 * @deprecated Use `SimulatedCall`.
 */
export type Rehearsal = SimulatedCall;

/**
 * The former name of `SubAgentRule`.
 * @deprecated Use `SubAgentRule`.
 */
export type SubAgentFault = SubAgentRule;
