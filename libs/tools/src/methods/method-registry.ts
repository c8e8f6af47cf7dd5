import { Injectable } from '@nestjs/common';
import { type Agent, canonicalClassName, type ProgressUpdate, type Tier } from '#core';
import type { GovernedClass, GovernedRecords, GovernedWrites, ParseRow } from '#data';
import { type EnvironmentGates, methodGate } from '#policy';
import { type DeclaredMethod, MethodDeclarationError } from './method-declaration.js';

/** The input of a method besides its arguments. All access on it is governed for the calling agent. */
export interface MethodCall {
  /** The class that declares it. */
  readonly className: string;
  /** The object the method was called on, as this agent may read it; null for class methods. */
  readonly receiver: ParseRow | null;
  /** Id of the receiver; null for class methods. */
  readonly objectId: string | null;
  /** The data, as the calling agent may read it. */
  readonly records: GovernedRecords;
  /** For methods of tier write or admin in a real run; null in a dry run. */
  readonly writes: GovernedWrites | null;
  /** The method must describe its effect and change nothing. */
  readonly dryRun: boolean;
  /** Aborts when the client disconnects or cancels, or at the timeout. */
  readonly signal: AbortSignal;
  /** Sent to the client; an update without a finite `progress` is dropped. */
  progress(update: ProgressUpdate): void;
  /** Only for methods that declare `agent: true`. */
  readonly agent: Agent | null;
}

export type ClassMethodHandler = (args: Readonly<Record<string, unknown>>, call: MethodCall) => unknown;

export interface CallableMethod extends DeclaredMethod {
  /** The method requires the calling agent. */
  readonly wantsAgent: boolean;
  readonly handler: ClassMethodHandler;
}

/** The methods that applications declared, by canonical class name. Without a provider of this port there are none. */
export abstract class DeclaredMethods {
  abstract of(className: string): readonly DeclaredMethod[];
}

/** The same methods with their handlers: for code that runs them, not for code that describes them. */
export abstract class CallableMethods extends DeclaredMethods {
  abstract find(className: string, name: string): CallableMethod | undefined;
}

/** The declared methods of one process. Only methods registered here by name can be called. */
@Injectable()
export class MethodRegistry extends CallableMethods {
  private readonly classes = new Map<string, Map<string, CallableMethod>>();

  /** @throws MethodDeclarationError when the class has a method of that name */
  register(className: string, method: CallableMethod): void {
    const name = canonicalClassName(className);
    const methods = this.classes.get(name) ?? new Map<string, CallableMethod>();
    if (methods.has(method.name)) throw new MethodDeclarationError(name, method.name, 'is declared twice');
    methods.set(method.name, method);
    this.classes.set(name, methods);
  }

  of(className: string): readonly CallableMethod[] {
    return [...(this.classes.get(className)?.values() ?? [])];
  }

  find(className: string, name: string): CallableMethod | undefined {
    return this.classes.get(className)?.get(name);
  }
}

/** The declared method in the arguments of call_method, with the canonical name of its class. */
export function findCalledMethod(
  args: unknown,
  methods: CallableMethods,
): (CallableMethod & { readonly className: string }) | undefined {
  const { class_name: written, method_name: name } = (args ?? {}) as Record<string, unknown>;
  if (typeof written !== 'string' || typeof name !== 'string') return undefined;
  const className = canonicalClassName(written);
  const method = methods.find(className, name);
  return method && { ...method, className };
}

/**
 * Whether the arguments of call_method request a preview. Every value except absent, null and false does, so that a
 * doubtful value changes nothing.
 */
export function asksForPreview(args: unknown): boolean {
  const { arguments: given } = (args ?? {}) as Record<string, unknown>;
  const { dry_run: asked } = (given ?? {}) as Record<string, unknown>;
  return asked !== undefined && asked !== null && asked !== false;
}

/**
 * The effective tier of a call: that of the target method for call_method (readonly while it is unresolved), the tool's
 * own otherwise.
 */
export function effectiveTier(
  tool: { readonly name: string; readonly permission: Tier },
  args: unknown,
  methods: CallableMethods,
): Tier {
  if (tool.name !== 'call_method') return tool.permission;
  return findCalledMethod(args, methods)?.permission ?? 'readonly';
}

/** The methods of a class that the agent may call: the described methods are those that would run. */
export function callableMethods(
  methods: readonly DeclaredMethod[],
  { className, methodTiers }: GovernedClass,
  agent: Agent,
  environment: EnvironmentGates,
): readonly DeclaredMethod[] {
  const { definition } = agent;
  if (definition.clientMode || !definition.tools.permits('call_method')) return [];
  return methods.filter(
    ({ name, permission }) =>
      methodTiers.has(permission) && methodGate(agent, { className, name, permission }, environment) === null,
  );
}
