import type { Agent } from '#agent';
import type { GovernedClass } from '#data';
import { type EnvironmentGates, methodGate } from '#policy';
import type { DeclaredMethod } from '../declared-methods.js';

/** Of the methods of a class those that the agent may call: what is told of is what would run. */
export function callableMethods(
  methods: readonly DeclaredMethod[],
  { className, methodTiers }: GovernedClass,
  agent: Agent,
  environment: EnvironmentGates,
): readonly DeclaredMethod[] {
  const { shape, identity } = agent;
  if (shape.clientMode || !shape.tools.permits('call_method')) return [];
  const assumed = identity.kind === 'aclUser' || identity.kind === 'aclRole';
  return methods.filter(
    ({ name, permission, type }) =>
      methodTiers.has(permission) &&
      !(assumed && type === 'instance' && permission !== 'readonly') &&
      methodGate(agent, { className, name, permission }, environment) === null,
  );
}
