import { isTier, type Tier } from '#core';
import { type OptionNames, optionsError } from '#policy';
import type { JsonSchema } from '../tool.js';

const METHOD_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}[!?=]?$/;

export function isMethodName(value: string): boolean {
  return METHOD_NAME.test(value);
}

/** Names that address the language, the process or the framework instead of the domain; lower case. */
const DANGEROUS_NAMES = new Set([
  // inherited members and prototypes
  '__proto__',
  'constructor',
  'prototype',
  'tostring',
  'tolocalestring',
  'valueof',
  'hasownproperty',
  'isprototypeof',
  'propertyisenumerable',
  '__definegetter__',
  '__definesetter__',
  '__lookupgetter__',
  '__lookupsetter__',
  // evaluation and reflection
  'eval',
  'evaluate',
  'instance_eval',
  'class_eval',
  'module_eval',
  'instance_exec',
  'class_exec',
  'define_method',
  'method_missing',
  'function',
  'reflect',
  'proxy',
  'apply',
  'bind',
  'call',
  'send',
  '__send__',
  'public_send',
  'invoke',
  'instance_variable_get',
  'instance_variable_set',
  'const_get',
  // the process and the machine
  'exec',
  'execute',
  'execsync',
  'execfile',
  'spawn',
  'spawnsync',
  'fork',
  'shell',
  'system',
  'syscall',
  'child_process',
  'process',
  'global',
  'globalthis',
  'require',
  'import',
  'load',
  'exit',
  'abort',
  'kill',
  // the framework's life cycle, and thenables
  'onmoduleinit',
  'onmoduledestroy',
  'onapplicationbootstrap',
  'onapplicationshutdown',
  'beforeapplicationshutdown',
  'configure',
  'then',
  'catch',
  'finally',
]);

/** Refused even when declared, in any letter case. */
export function isDangerousMethodName(name: string): boolean {
  return DANGEROUS_NAMES.has(name.toLowerCase().replace(/[!?=]$/, ''));
}

/** A domain action that an application declares on a class, as schemas describe it. */
export interface DeclaredMethod {
  readonly name: string;
  readonly type: 'instance' | 'class';
  /** Lowest tier that may call it. */
  readonly permission: Tier;
  readonly description: string | null;
  readonly supportsDryRun: boolean;
  readonly parameters: JsonSchema | null;
  /** Argument keys it may write: the write boundary, shown only to debugging operators. */
  readonly permittedKeys: readonly string[] | null;
}

/** Options that offer a method of a provider to agents. */
export interface AgentMethodOptions {
  /** Default: the method's own name. */
  readonly name?: string;
  /** For the model: what it does and when to use it. */
  readonly description?: string;
  /** Lowest tier that may call it. Default `readonly`. */
  readonly permission?: Tier;
  /** `instance` methods are called on one object, `class` methods on none. Default `class`. */
  readonly type?: 'instance' | 'class';
  /** The method creates its own preview when `call.dryRun` is set. Default false: Parley describes the call instead. */
  readonly supportsDryRun?: boolean;
  /** The only accepted argument keys. Default: any except the reserved ones. */
  readonly permittedKeys?: readonly string[];
  /** JSON Schema of the arguments, for agents. */
  readonly parameters?: JsonSchema;
  /** Pass the calling agent as `call.agent`. Default false. */
  readonly agent?: boolean;
}

/** An invalid declaration of a method; thrown at start, never during a call. */
export class MethodDeclarationError extends Error {
  override readonly name = 'MethodDeclarationError';
  constructor(className: string, method: string, problem: string) {
    super(`Method '${className}.${method}': ${problem}`);
  }
}

export interface MethodDeclaration {
  readonly method: DeclaredMethod;
  readonly wantsAgent: boolean;
}

const isNameList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string');

const OPTIONS = {
  name: true,
  description: true,
  permission: true,
  type: true,
  supportsDryRun: true,
  permittedKeys: true,
  parameters: true,
  agent: true,
} satisfies OptionNames<AgentMethodOptions>;

/** The declaration with its defaults filled in. @throws MethodDeclarationError */
export function defineMethod(
  className: string,
  propertyName: string,
  options: AgentMethodOptions,
): MethodDeclaration {
  const name = options.name ?? propertyName;
  const fail = (error: string): never => {
    throw new MethodDeclarationError(className, name, error);
  };
  const unknown = optionsError(options, OPTIONS);
  if (unknown !== null) fail(unknown);
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

/** Whether a method that any agent may call has a name that implies a change: logged as a warning. */
export function impliesWriting({ name, permission }: DeclaredMethod): boolean {
  return permission === 'readonly' && WRITING_VERB.test(name);
}
