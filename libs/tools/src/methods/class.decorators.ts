import 'reflect-metadata';
import {
  type ClassConfig,
  type ClassDeclaration,
  type MasksConfig,
  narrowClassConfig,
  type TenantScopeConfig,
} from '#policy';

const CLASS = Symbol('parley:parse-class');
const RULES = Symbol('parley:class-rules');

/**
 * Says that a provider speaks for a Parse class: its `@AgentMethod`s are called on that class, and its rules join those of
 * the configuration, each only where it narrows. Stores metadata and nothing else.
 */
export function ParseClass(className: string, config: ClassConfig = {}): ClassDecorator {
  return (target) => {
    Reflect.defineMetadata(CLASS, className, target);
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

/** What of the class comes along when it is an included pointer. */
export const AgentJoinFields = (...joinFields: readonly string[]) => rule({ joinFields });

/** Fields that are left out of included rows and marked as heavy. */
export const AgentLargeFields = (...largeFields: readonly string[]) => rule({ largeFields });

/** What stands for the values of these fields: `drop`, `deny`, `mask`, `hash`, or one of them per tier. */
export const AgentMasks = (masks: MasksConfig) => rule({ masks });

/** No agent reaches the class; with `except`, agents in true master posture may name it. */
export const AgentHidden = (options?: { readonly except: 'masterKey' }) => rule({ hidden: options ?? true });

/** Listings, relations and suggestions name visible classes only, once any is. */
export const AgentVisible = () => rule({ visible: true });

/** What a class holds and how to query it, told to agents that may read it. */
export const AgentDescription = (description: string, usage?: string) =>
  rule({ description, ...(usage !== undefined && { usage }) });

/** The default view of the class; not a security boundary. */
export const AgentCanonicalFilter = (canonicalFilter: Readonly<Record<string, unknown>>) =>
  rule({ canonicalFilter });

/**
 * Every access carries the agent's tenant in this field.
 * @param scope where the tenant comes from (`from`: a claim or a function of the agent; default its `tenantId`) and whom the scope does not
 * bind (`bypass`: tiers or a function); a list is one of tiers
 */
export const AgentTenantScope = (
  field: string,
  scope: readonly string[] | Omit<TenantScopeConfig, 'field'> = [],
) => rule({ tenantScope: { field, ...(isTiers(scope) ? { bypass: scope } : scope) } });

const isTiers = (scope: unknown): scope is readonly string[] => Array.isArray(scope);

/** What a provider class declares; null when it speaks for no Parse class. */
export function classDeclarationOf(provider: object): ClassDeclaration | null {
  const className = Reflect.getOwnMetadata(CLASS, provider) as string | undefined;
  if (className === undefined) return null;
  const rules = (Reflect.getOwnMetadata(RULES, provider) as readonly ClassConfig[] | undefined) ?? [];
  const config = rules.reduce((one, other) => narrowClassConfig(className, one, other), {});
  return { className, config };
}
