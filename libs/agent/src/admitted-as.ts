import type { Agent } from './agent.js';

/**
 * Who somebody was admitted as, in one text: the principal, its tenant and its agent. One person with two tokens, of more and
 * of fewer scopes or of two tenants, is two of these: what is told to one of them is not the other's to hear or to answer.
 */
export function admittedAs({ principal, tenantId, shape }: Agent): string {
  return JSON.stringify([principal, tenantId, shape.name]);
}
