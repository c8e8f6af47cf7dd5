import { canonicalClassName, isClassName, Refused, type Tier, refuse } from '#core';
import { type AgentScope, idForm, isIdFor, isRefusal, redact } from '#policy';
import type { GovernedMethods } from '../governed-access.js';
import { assertClassPermits, OPERATION_OF_TIER, type GovernedCall } from './governed-call.js';

/** The governed side of running declared methods, for one call. */
export class ParleyMethods implements Omit<GovernedMethods, 'writes'> {
  constructor(private readonly call: GovernedCall) {}

  async enter(className: unknown): Promise<string> {
    const { scope, agent } = this.call;
    const access = scope.enter(agent, className, null);
    if (isRefusal(access)) throw new Refused(access);
    return access.className;
  }

  async checkId(className: string, objectId: string): Promise<void> {
    const schema = this.call.scope.schemas.get(className);
    if (!isIdFor(schema, objectId)) throw refuse.invalidArgument(idForm(schema));
  }

  async permit(className: string, permission: Tier): Promise<void> {
    assertClassPermits(this.call, className, OPERATION_OF_TIER[permission]);
  }

  async present(result: unknown): Promise<unknown> {
    return presentResult(result, this.call.scope);
  }
}

/** Maximum depth of a result; deeper values become null. */
const MAX_DEPTH = 32;

/** Members that identify an object; they are kept whatever an allowlist names. */
const IDENTIFYING = new Set(['className', '__type', '__redacted']);

/**
 * Converts the result of application code to plain JSON that this agent may see: objects that name their class are reduced to
 * its allowlist, everything is redacted, and a value that is not JSON becomes text.
 */
function presentResult(result: unknown, scope: AgentScope): unknown {
  return redact(plain(result, scope, 0), scope.withholding);
}

function plain(value: unknown, scope: AgentScope, depth: number): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (typeof value !== 'object') return printValue(value);
  if (depth >= MAX_DEPTH) return null;
  if (Array.isArray(value) || value instanceof Set)
    return [...value].map((entry) => plain(entry, scope, depth + 1));
  if (value instanceof Map) return members(value as Map<unknown, unknown>, scope, depth);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return printValue(value);
  return members(new Map<unknown, unknown>(Object.entries(value)), scope, depth);
}

function members(entries: ReadonlyMap<unknown, unknown>, scope: AgentScope, depth: number): unknown {
  const className = entries.get('className');
  const readable = isClassName(className) ? scope.access(canonicalClassName(className)).readable : null;
  return Object.fromEntries(
    [...entries].flatMap(([key, member]) => {
      const name = String(key);
      if (readable && !readable.has(name) && !IDENTIFYING.has(name)) return [];
      return [[name, plain(member, scope, depth + 1)]];
    }),
  );
}

/** Instances of a class may hold anything; only their own JSON form is shown. */
function printValue(value: unknown): string {
  try {
    return String(value);
  } catch {
    return '[unprintable]';
  }
}
