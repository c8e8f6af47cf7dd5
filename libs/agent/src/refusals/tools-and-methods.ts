import type { Refusal } from '../refusal.js';
import type { Tier } from '../tier.js';
import { accessDenied, invalidArgument } from './general.js';
import { listed } from './listed.js';

export function toolFiltered(tool: string): Refusal {
  return {
    code: 'tool_filtered',
    gate: 'tool_filter',
    message: `Tool '${tool}' is not enabled for this agent instance (excluded by its tools: filter)`,
  };
}

export function mutationsNotAllowed(tool: string): Refusal {
  return accessDenied(
    'mutations',
    `Raw mutation tool '${tool}' is not available to this client-mode agent: it needs allow_mutations: true, ` +
      'PARSE_AGENT_ALLOW_WRITE_TOOLS=true and PARSE_AGENT_ALLOW_RAW_CRUD=true',
  );
}

export function notClientSafe(tool: string, clientSafe: readonly string[]): Refusal {
  return accessDenied(
    'mode_ceiling',
    `Tool '${tool}' is not available to client-mode agents. Available: ${listed(clientSafe)}. ` +
      'Custom tools join by registering with client_safe: true',
  );
}

export function tierTooLow(tool: string, needed: Tier | 'unknown', held: Tier): Refusal {
  return {
    code: 'permission_denied',
    gate: 'tier',
    message: `Permission denied: '${tool}' requires ${needed} permissions. Current level: ${held}`,
  };
}

const meant = (near: readonly string[]): string =>
  near.length > 0 ? ` Did you mean ${near.map((name) => `'${name}'`).join(' or ')}?` : '';

/** @param near names of tools that the caller may use and could have meant */
export function unknownTool(tool: string, held: Tier, near: readonly string[]): Refusal {
  const { message, ...refusal } = tierTooLow(tool, 'unknown', held);
  return {
    ...refusal,
    message: `${message}. There is no tool of that name.${meant(near)} list_tools names the tools that you may call`,
  };
}

/** An argument that the tool does not declare. @param near declared names that the caller could have meant */
export function unknownArgument(
  tool: string,
  argument: string,
  near: readonly string[],
  declared: readonly string[],
): Refusal {
  const takes = declared.length > 0 ? ` It takes: ${listed(declared)}` : ' It takes no arguments';
  return invalidArgument(`${tool} does not take '${argument}'.${meant(near)}${takes}`);
}

export function envGateClosed(
  what: 'Raw CRUD' | 'Raw schema-mutating',
  tool: string,
  missing: readonly string[],
): Refusal {
  return accessDenied('env_gates', `${what} tool '${tool}' is disabled. Required: ${missing.join(' AND ')}`);
}

/** An application's own tool that declares that it writes. */
export function writeGatesClosed(tool: string, missing: readonly string[]): Refusal {
  return accessDenied(
    'env_gates',
    `Tool '${tool}' writes and is disabled. Required: ${missing.join(' AND ')}`,
  );
}

export function methodFiltered(qualified: string): Refusal {
  return {
    code: 'tool_filtered',
    gate: 'method_filter',
    message: `Method '${qualified}' is not enabled for this agent instance (excluded by its methods: filter)`,
  };
}

export function methodEnvClosed(what: 'Write' | 'Admin', qualified: string, gate: string): Refusal {
  return accessDenied('env_gates', `${what} methods are disabled: '${qualified}' requires ${gate}=true`);
}
