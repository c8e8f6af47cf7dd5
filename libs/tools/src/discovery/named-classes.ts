import type { JsonSchema, ToolDefinition } from '../tool.js';

/** The classes that a caller may use with a tool. */
export interface NamedClasses {
  /** Sorted; not empty. */
  readonly names: readonly string[];
  /** The caller may use no other class. */
  readonly isComplete: boolean;
  /** The caller may call get_all_schemas. */
  readonly pointer: boolean;
}

/** Most characters of the names in one schema: every tool repeats them. */
const MOST_CHARACTERS = 256;
/** Most variants of a tool that are kept, one for each list of names; beyond them all are made again. */
const MOST_VARIANTS = 64;

const variants = new WeakMap<ToolDefinition, Map<string, ToolDefinition>>();

/**
 * A tool with the names of these classes in the schema of its `class_name`: as an enum where they are few and all there are,
 * otherwise as a pointer to get_all_schemas. The same object for the same names, so that rendered lists are kept.
 */
export function nameClasses(tool: ToolDefinition, classes: NamedClasses): ToolDefinition {
  const naming = findNaming(tool, classes);
  if (naming === null) return tool;
  let known = variants.get(tool);
  if (!known) variants.set(tool, (known = new Map()));
  const key = JSON.stringify(naming);
  let named = known.get(key);
  if (!named) {
    if (known.size >= MOST_VARIANTS) known.clear();
    known.set(key, (named = withNames(tool, naming)));
  }
  return named;
}

function findNaming(
  { use }: ToolDefinition,
  { names, isComplete, pointer }: NamedClasses,
): JsonSchema | null {
  if (use === 'createClass') return null;
  if (isComplete && names.join().length <= MOST_CHARACTERS) return { enum: names };
  return pointer ? { description: 'A class; get_all_schemas lists them.' } : null;
}

function withNames(tool: ToolDefinition, naming: JsonSchema): ToolDefinition {
  const properties = tool.inputSchema['properties'] as Readonly<Record<string, JsonSchema>>;
  const { class_name: written, ...others } = properties;
  return Object.freeze({
    ...tool,
    inputSchema: { ...tool.inputSchema, properties: { class_name: { ...written, ...naming }, ...others } },
  });
}
