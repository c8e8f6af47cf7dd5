import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import type { ToolDefinition, ToolHandler } from '../tool.js';
import type { SchemaReader } from '../json-schema.js';
import { type DefinedTool, defineTool, ToolDeclarationError, type ToolOptions } from './tool-declaration.js';
import { readArgumentsClass } from './tool-parameters.js';

const TOOL = Symbol('parley:tool');

export interface ToolDeclaration extends DefinedTool {
  readonly methodName: string;
}

/** A definition with its handler, ready for the registry: `{ ...defineTool(options), handler }`. */
export interface ToolRegistration {
  /** The definition that clients receive. */
  readonly definition: ToolDefinition;
  /** How arguments are read. Default: by the JSON Schema of the definition. */
  readonly input?: SchemaReader;
  /** How results are checked. Default: by the JSON Schema of the definition, when it has one. */
  readonly output?: SchemaReader;
  /** The handler, which runs after every gate. */
  readonly handler: ToolHandler;
  /**
   * The class and the method that declare the tool: where guards and interceptors of every call read metadata.
   * @internal
   */
  readonly declared?: { readonly type: Type; readonly method: (...args: never[]) => unknown };
  /** Replaces the built-in of that name. Default false. */
  readonly override?: boolean;
}

/**
 * Makes a method of an injectable provider a tool: `(args, call: ToolCall) => data`. Stores metadata and nothing else.
 * Without `input`, the class that the compiler recorded as the type of the arguments is the input.
 * @throws ToolDeclarationError at declaration
 */
export function Tool(options: ToolOptions): MethodDecorator {
  return (prototype, methodName, descriptor) => {
    const input = options?.input ?? readArgumentsClass(prototype, methodName);
    const defined = defineTool(input ? { ...options, input } : options);
    Reflect.defineMetadata(TOOL, defined, descriptor.value as object);
  };
}

/**
 * The tools declared on a provider's prototype, in order of declaration. A subclass that redefines a method without
 * `@Tool` removes the tool.
 * @throws ToolDeclarationError when two methods declare one name
 */
export function toolDeclarations(prototype: object): readonly ToolDeclaration[] {
  const declarations: ToolDeclaration[] = [];
  for (const [methodName, method] of listMethods(prototype)) {
    const declared = Reflect.getOwnMetadata(TOOL, method) as DefinedTool | undefined;
    if (!declared) continue;
    const { name } = declared.definition;
    const other = declarations.find((declaration) => declaration.definition.name === name);
    if (other) throw new ToolDeclarationError(name, `declared by both ${other.methodName} and ${methodName}`);
    declarations.push({ methodName, ...declared });
  }
  return declarations;
}

/** The tools of a provider instance, bound to it. @throws ToolDeclarationError */
export function toolsOf(provider: object): readonly ToolRegistration[] {
  return toolDeclarations(Object.getPrototypeOf(provider) as object).map(({ methodName, ...declared }) => {
    const method = Reflect.get(provider, methodName) as ToolHandler;
    return { ...declared, handler: (args, call) => method.call(provider, args, call) };
  });
}

/** Method names of a prototype and its ancestors, nearest first. A getter is never run. */
export function* listMethods(prototype: object): Generator<[string, object]> {
  const seen = new Set<string>();
  for (let level = prototype; level && level !== Object.prototype; level = Object.getPrototypeOf(level)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (typeof value === 'function' && name !== 'constructor') yield [name, value as object];
    }
  }
}
