import 'reflect-metadata';
import { declareClassName, findDeclaredName } from '#core';
import {
  assertOptions,
  CLASS_OPTIONS,
  type ClassConfig,
  type ClassDeclaration,
  type MasksConfig,
  narrowClassConfig,
  type TenantScopeConfig,
} from '#policy';
import type { CallableMethod, ClassMethodHandler } from './method-registry.js';
import { listMethods } from '../declaration/tool.decorator.js';
import { refuseDecoratedParameters } from '../declaration/tool-parameters.js';
import { type AgentMethodOptions, defineMethod, MethodDeclarationError } from './method-declaration.js';

const RULES = Symbol('parley:class-rules');

/**
 * Assigns a provider to a Parse class: its `@AgentMethod`s are called on that class, and its rules join those of the
 * configuration, each only where it narrows. Stores metadata and nothing else.
 */
export function ParseClass(className: string, config: ClassConfig = {}): ClassDecorator {
  assertOptions('@ParseClass', config, CLASS_OPTIONS);
  return (target) => {
    declareClassName(target, className);
    addRules(target, config);
  };
}

function addRules(target: object, config: ClassConfig): void {
  const rules = (Reflect.getOwnMetadata(RULES, target) as readonly ClassConfig[] | undefined) ?? [];
  Reflect.defineMetadata(RULES, [...rules, config], target);
}

const rule =
  (config: ClassConfig): ClassDecorator =>
  (target) =>
    addRules(target, config);

/** The readable fields; with none, only the three that every class keeps. */
export const AgentFields = (...fields: readonly string[]) => rule({ fields });

/** The fields of the class that an included pointer returns. */
export const AgentJoinFields = (...joinFields: readonly string[]) => rule({ joinFields });

/** Fields that are left out of included rows and marked as heavy. */
export const AgentLargeFields = (...largeFields: readonly string[]) => rule({ largeFields });

/** The replacement of these fields' values: `drop`, `deny`, `mask`, `hash`, or one of them per tier. */
export const AgentMasks = (masks: MasksConfig) => rule({ masks });

/** Hides the class from every agent; with `except`, agents in true master mode may name it. */
export const AgentHidden = (options?: { readonly except: 'masterKey' }) => rule({ hidden: options ?? true });

/** Listings, relations and suggestions name only visible classes, once any class is visible. */
export const AgentVisible = () => rule({ visible: true });

/** The content of a class and how to query it, for agents that may read it. */
export const AgentDescription = (description: string, usage?: string) =>
  rule({ description, ...(usage !== undefined && { usage }) });

/** The canonical filter of the class; not a security boundary. */
export const AgentCanonicalFilter = (canonicalFilter: Readonly<Record<string, unknown>>) =>
  rule({ canonicalFilter });

/**
 * Every access carries the agent's tenant in this field.
 * @param scope the source of the tenant (`from`: a claim or a function of the agent; default its `tenantId`) and the
 * agents without the scope (`bypass`: tiers or a function); a list is one of tiers
 */
export const AgentTenantScope = (
  field: string,
  scope: readonly string[] | Omit<TenantScopeConfig, 'field'> = [],
) => rule({ tenantScope: { field, ...(isTiers(scope) ? { bypass: scope } : scope) } });

const isTiers = (scope: unknown): scope is readonly string[] => Array.isArray(scope);

/** The declaration of a provider class; null when it has no Parse class. */
export function findClassDeclaration(provider: object): ClassDeclaration | null {
  const className = findDeclaredName(provider);
  if (className === null) return null;
  const rules = (Reflect.getOwnMetadata(RULES, provider) as readonly ClassConfig[] | undefined) ?? [];
  const config = rules.reduce((one, other) => narrowClassConfig(className, one, other), {});
  return { className, config };
}

const METHOD = Symbol('parley:agent-method');

/**
 * Offers a method of a `@ParseClass` provider to agents through call_method: `(args, call: MethodCall) => result`. Stores
 * metadata and nothing else.
 */
export function AgentMethod(options: AgentMethodOptions = {}): MethodDecorator {
  return (_prototype, _propertyName, descriptor) => {
    Reflect.defineMetadata(METHOD, options, descriptor.value as object);
  };
}

export interface DeclaredOn {
  readonly className: string;
  readonly method: CallableMethod;
}

/**
 * The methods of a provider instance, bound to it.
 * @throws MethodDeclarationError for a bad declaration, or one on a provider without `@ParseClass`
 * @throws TypeError for a decorated parameter
 */
export function listAgentMethods(provider: object): readonly DeclaredOn[] {
  const prototype = Object.getPrototypeOf(provider) as object | null;
  if (prototype === null) return [];
  const found: DeclaredOn[] = [];
  for (const [propertyName, declared] of listMethods(prototype)) {
    const options = Reflect.getOwnMetadata(METHOD, declared) as AgentMethodOptions | undefined;
    if (!options) continue;
    const className = findClassDeclaration(prototype.constructor)?.className;
    if (className === undefined)
      throw new MethodDeclarationError(
        prototype.constructor.name,
        propertyName,
        'needs @ParseClass on its class',
      );
    refuseDecoratedParameters(provider, propertyName, '@AgentMethod');
    const { method, wantsAgent } = defineMethod(className, propertyName, options);
    const body = declared as ClassMethodHandler;
    const handler: ClassMethodHandler = (args, call) => body.call(provider, args, call);
    found.push({ className, method: { ...method, wantsAgent, handler } });
  }
  return found;
}
