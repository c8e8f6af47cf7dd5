import { isTier, type Tier, tierCovers, isJsonObject } from '#core';
import { type OptionNames, optionsError } from '#policy';
import type { SchemaReader } from '../json-schema.js';
import { schemaReader, type ValueSchema } from './value-schema.js';
import {
  type JsonSchema,
  TASK_SUPPORT,
  type TaskSupport,
  TOOL_NEEDS,
  type ToolAnnotations,
  type ToolDefinition,
  type ToolNeed,
  type ToolUse,
} from '../tool.js';

/** Options that make a method of a provider a tool. */
export interface ToolOptions {
  /** 1 to 128 of `A-Z a-z 0-9 _ . -`. The name of a built-in tool needs `override`. */
  readonly name: string;
  /** For people; `name` is for programs. */
  readonly title?: string;
  /** For the model: the effect, its limits, and the preferred alternatives. */
  readonly description: string;
  /** Lowest tier that may call it. Default `readonly`. */
  readonly permission?: Tier;
  /** Default `custom`. */
  readonly category?: string;
  /** Timeout of a call in seconds, at least 1. Default 30. */
  readonly timeout?: number;
  /**
   * The arguments, an object: JSON Schema, a Standard Schema, or a class with class-validator decorators. The handler
   * receives the output of the schema and never invalid arguments. Default: the class that types the arguments of the
   * method, else no arguments.
   */
  readonly input?: ValueSchema;
  /**
   * The result, an object, in the same forms. When given, results are also sent as structured content, and an invalid
   * one is an error of the tool.
   */
  readonly output?: ValueSchema;
  /** Hints for clients, without effect on gates. Default: by tier. */
  readonly annotations?: ToolAnnotations;
  /** Address (`ui:`) of a page that shows the result, for hosts that show pages (docs/guide/views.md). Default: none. */
  readonly view?: string;
  /** Callable by agents that act as a client without a master key. Default false. */
  readonly clientSafe?: boolean;
  /**
   * Its access beyond reading: `rows` (tier write or admin) provides `call.writes`, `classes` (admin) `call.classes`.
   */
  readonly needs?: readonly ToolNeed[];
  /**
   * What it does with the class in `class_name`. Default: lists of tools do not depend on classes.
   * @internal
   */
  readonly use?: ToolUse;
  /**
   * `always`: a person approves every call. `never`: nobody is asked. Default: the policy says which.
   * @internal
   */
  readonly approval?: 'always' | 'never';
  /** Task support, for clients with tasks. Default: none. */
  readonly task?: TaskSupport;
  /** Timeout of a run as a task in seconds, at least 1. Default 600. */
  readonly taskTimeout?: number;
  /** Replaces the built-in of that name, whose tier, category and client gate stay. Default false. */
  readonly override?: boolean;
}

/** An invalid declaration or registration of a tool; thrown at start, never during a call. */
export class ToolDeclarationError extends Error {
  /** The same across two copies of the package. */
  override readonly name = 'ToolDeclarationError';
  constructor(tool: unknown, problem: string) {
    super(`Tool '${String(tool)}': ${problem}`);
  }
}

const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

export function isToolName(value: unknown): value is string {
  return typeof value === 'string' && TOOL_NAME.test(value);
}

const VIEW_ADDRESS = /^ui:\/\/\S+$/;
const DEFAULT_TIMEOUT = 30;

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
/** The path of an array schema without `items`, which several model vendors refuse; null when there is none. */
function arrayWithoutItems(schema: unknown, path: string): string | null {
  if (Array.isArray(schema)) return firstError(schema.entries(), path);
  if (!isJsonObject(schema)) return null;
  if (schema['type'] === 'array' && schema['items'] === undefined) return path;
  return firstError(Object.entries(schema), path);
}

function firstError(entries: Iterable<[string | number, unknown]>, path: string): string | null {
  for (const [key, value] of entries) {
    const error = arrayWithoutItems(value, `${path}.${key}`);
    if (error !== null) return error;
  }
  return null;
}

/** @throws ToolDeclarationError with the reason */
export function checkDefinition(definition: ToolDefinition): void {
  const fail = (error: string): never => {
    throw new ToolDeclarationError(definition.name, error);
  };
  if (!isToolName(definition.name)) fail('the name must be 1 to 128 of A-Z a-z 0-9 _ . -');
  if (!isText(definition.description)) fail('a description is required');
  if (!isText(definition.category)) fail('the category must not be blank');
  if (!isTier(definition.permission)) fail('permission must be readonly, write or admin');
  if (!Number.isFinite(definition.timeout) || definition.timeout < 1)
    fail('timeout must be at least 1 second');
  const { task, taskTimeout = 1 } = definition;
  if (task !== undefined && !TASK_SUPPORT.includes(task)) fail(`task may be ${TASK_SUPPORT.join(', ')}`);
  if (!Number.isFinite(taskTimeout) || taskTimeout < 1) fail('taskTimeout must be at least 1 second');
  for (const [part, schema] of [
    ['input', definition.inputSchema],
    ['output', definition.outputSchema],
  ] as const) {
    if (part === 'output' && schema === undefined) continue;
    if (!isJsonObject(schema) || schema['type'] !== 'object')
      fail(`${part} must be a JSON Schema of type object`);
  }
  if (definition.view !== undefined && !VIEW_ADDRESS.test(definition.view))
    fail('view must be an address that begins with ui://');
  const needs = definition.needs ?? [];
  if (needs.some((need) => !TOOL_NEEDS.includes(need))) fail(`needs may name ${TOOL_NEEDS.join(', ')}`);
  for (const [need, tier] of [
    ['rows', 'write'],
    ['classes', 'admin'],
  ] as const) {
    if (needs.includes(need) && !tierCovers(definition.permission, tier))
      fail(`what needs ${need} must have permission ${tier} or higher`);
  }
  const bare = arrayWithoutItems(definition.inputSchema, 'input');
  if (bare !== null) fail(`${bare} is an array without items`);
}

const NO_ARGUMENTS: JsonSchema = { type: 'object', properties: {}, additionalProperties: false };

/** The schema with members that vendors of models require: one without `properties` makes them refuse all tools. */
export const completeInput = (schema: JsonSchema): JsonSchema => ({
  required: [],
  ...schema,
  ...(schema['properties'] === undefined && { properties: {} }),
});

/** A definition and the readers of its values. */
export interface DefinedTool {
  readonly definition: ToolDefinition;
  readonly input: SchemaReader;
  readonly output?: SchemaReader;
  /** Present when the declaration replaces the built-in of its name. */
  readonly override?: true;
}

const OPTIONS = {
  name: true,
  title: true,
  description: true,
  permission: true,
  category: true,
  timeout: true,
  input: true,
  output: true,
  annotations: true,
  view: true,
  clientSafe: true,
  needs: true,
  approval: true,
  use: true,
  task: true,
  taskTimeout: true,
  override: true,
} satisfies OptionNames<ToolOptions>;

/** The definition with its defaults filled in. @throws ToolDeclarationError */
export function defineTool(options: ToolOptions): DefinedTool {
  const unknown = optionsError(options, OPTIONS);
  if (unknown !== null) throw new ToolDeclarationError(options?.name, unknown);
  const { title, annotations } = options;
  const input = createReader(options, 'input', options.input ?? NO_ARGUMENTS);
  const output = options.output && createReader(options, 'output', options.output);
  const definition: ToolDefinition = {
    name: options.name,
    ...(title !== undefined && { title }),
    description: options.description,
    category: options.category ?? 'custom',
    permission: options.permission ?? 'readonly',
    timeout: options.timeout ?? DEFAULT_TIMEOUT,
    inputSchema: completeInput(input.jsonSchema),
    ...(output && { outputSchema: output.jsonSchema }),
    ...(annotations && { annotations: { ...(title !== undefined && { title }), ...annotations } }),
    clientSafe: options.clientSafe ?? false,
    ...(options.view !== undefined && { view: options.view }),
    ...(options.use && { use: options.use }),
    ...(options.approval && { approval: options.approval }),
    ...(options.task && { task: options.task }),
    ...(options.taskTimeout !== undefined && { taskTimeout: options.taskTimeout }),
    ...(options.needs && { needs: Object.freeze([...options.needs]) }),
  };
  checkDefinition(definition);
  return {
    definition: Object.freeze(definition),
    input,
    ...(output && { output }),
    ...(options.override && { override: true as const }),
  };
}

function createReader({ name }: ToolOptions, side: 'input' | 'output', schema: ValueSchema): SchemaReader {
  try {
    return schemaReader(schema, side);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ToolDeclarationError(name, `${side} ${error.message}`);
  }
}
