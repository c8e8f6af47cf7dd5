import 'reflect-metadata';
import type { CallableMethod, MethodHandler } from './method-registry.js';
import { methodsOf } from '../declaration/tool.decorator.js';
import { classDeclarationOf } from './class.decorators.js';
import { type AgentMethodOptions, defineMethod, MethodDeclarationError } from './method-declaration.js';

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
 */
export function agentMethodsOf(provider: object): readonly DeclaredOn[] {
  const prototype = Object.getPrototypeOf(provider) as object | null;
  if (prototype === null) return [];
  const found: DeclaredOn[] = [];
  for (const [propertyName, declared] of methodsOf(prototype)) {
    const options = Reflect.getOwnMetadata(METHOD, declared) as AgentMethodOptions | undefined;
    if (!options) continue;
    const className = classDeclarationOf(prototype.constructor)?.className;
    if (className === undefined)
      throw new MethodDeclarationError(
        prototype.constructor.name,
        propertyName,
        'needs @ParseClass on its class',
      );
    const { method, wantsAgent } = defineMethod(className, propertyName, options);
    const body = declared as MethodHandler;
    const handler: MethodHandler = (args, call) => body.call(provider, args, call);
    found.push({ className, method: { ...method, wantsAgent, handler } });
  }
  return found;
}
