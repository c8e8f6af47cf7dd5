import { isTier, type Tier } from '#agent';
import type { DeclaredMethod } from '../declared-methods.js';
import type { JsonSchema } from '../tool.js';
import { isDangerousMethodName, isMethodName } from './method-names.js';

/** What a provider says about one of its methods to offer it to agents. */
export interface AgentMethodOptions {
  /** Default: the method's own name. */
  readonly name?: string;
  /** For the model: what it does and when to use it. */
  readonly description?: string;
  /** Lowest tier that may call it. Default `readonly`. */
  readonly permission?: Tier;
  /** `instance` methods are called on one object, `class` methods on none. Default `class`. */
  readonly type?: 'instance' | 'class';
  /** The method makes its own preview when `call.dryRun` is set. Default false: Parley tells what would be called. */
  readonly supportsDryRun?: boolean;
  /** The only argument keys it takes. Default: any but those that are never given. */
  readonly permittedKeys?: readonly string[];
  /** JSON Schema of the arguments, told to agents. */
  readonly parameters?: JsonSchema;
  /** Pass the calling agent as `call.agent`. Default false. */
  readonly agent?: boolean;
}

/** A method was declared in a way that cannot work; raised at start, never during a call. */
export class MethodDeclarationError extends Error {
  override readonly name = 'MethodDeclarationError';
  constructor(className: string, method: string, fault: string) {
    super(`Method '${className}.${method}': ${fault}`);
  }
}

export interface MethodDeclaration {
  readonly method: DeclaredMethod;
  readonly wantsAgent: boolean;
}

const isNameList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string');

/** The declaration with its defaults filled in. @throws MethodDeclarationError */
export function defineMethod(
  className: string,
  propertyName: string,
  options: AgentMethodOptions,
): MethodDeclaration {
  const name = options.name ?? propertyName;
  const fail = (fault: string): never => {
    throw new MethodDeclarationError(className, name, fault);
  };
  const { permission = 'readonly', type = 'class', permittedKeys, parameters } = options;
  if (!isMethodName(name)) fail('the name must be an identifier, at most 128 characters');
  if (isDangerousMethodName(name)) fail('the name is blocked for security reasons');
  if (!isTier(permission)) fail('permission must be readonly, write or admin');
  if (type !== 'instance' && type !== 'class') fail('type must be instance or class');
  if (permittedKeys !== undefined && !isNameList(permittedKeys))
    fail('permittedKeys must be a list of names');
  if (parameters !== undefined && (parameters === null || typeof parameters !== 'object'))
    fail('parameters must be a JSON Schema');
  return {
    wantsAgent: options.agent ?? false,
    method: {
      name,
      type,
      permission,
      description: options.description ?? null,
      supportsDryRun: options.supportsDryRun ?? false,
      parameters: parameters ?? null,
      permittedKeys: permittedKeys ?? null,
    },
  };
}

const WRITING_VERB =
  /save|update|delete|destroy|create|remove|insert|upsert|modify|set|clear|reset|add|append|push|increment|decrement/i;

/** A name that promises a change on a method that anyone may call: worth a line in the log. */
export function soundsLikeWriting({ name, permission }: DeclaredMethod): boolean {
  return permission === 'readonly' && WRITING_VERB.test(name);
}
