import type { ToolDefinition } from '../tool.js';

/** Names that OpenAI, Anthropic and Gemini all accept. MCP permits dots and 128 characters as well. */
const ACCEPTED_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
const MAX_DESCRIPTION = 1024;
/** OpenAI and Anthropic want one object at the top of an input. */
const COMBINATIONS = ['anyOf', 'oneOf', 'allOf', 'enum', 'not'] as const;
/** Anthropic's rule; it looks at the arguments themselves, not into them. */
const ARGUMENT_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Null: the name is accepted. */
const nameWarning = (name: string): string | null =>
  ACCEPTED_NAME.test(name) ? null : 'the name is not 1 to 64 of A-Z a-z 0-9 _ - with a letter or _ in front';

/** Null: the name of the prompt is accepted. */
export function promptWarning(name: string): string | null {
  const refused = nameWarning(name);
  return refused === null ? null : `${refused}: some hosts offer no command for it`;
}

const hasReference = (schema: unknown): boolean =>
  typeof schema === 'object' &&
  schema !== null &&
  (typeof (schema as { $ref?: unknown }).$ref === 'string' || Object.values(schema).some(hasReference));

/**
 * What vendors of models refuse in a tool that MCP permits: one such tool makes them refuse all tools of a request.
 * Null: nothing.
 */
export function vendorWarning({ name, description, inputSchema }: ToolDefinition): string | null {
  const named = nameWarning(name);
  const combined = COMBINATIONS.find((keyword) => inputSchema[keyword] !== undefined);
  const refused = [
    ...(named === null ? [] : [named]),
    ...(description.length > MAX_DESCRIPTION
      ? [`the description has ${description.length} characters, more than ${MAX_DESCRIPTION}`]
      : []),
    ...Object.keys((inputSchema['properties'] as object | undefined) ?? {})
      .filter((argument) => !ARGUMENT_NAME.test(argument))
      .map((argument) => `the argument '${argument}' is not 1 to 64 of A-Z a-z 0-9 _ . -`),
    ...(hasReference(inputSchema) ? ['the input has a $ref: write what it refers to in its place'] : []),
    ...(combined === undefined ? [] : [`the input has ${combined} beside its properties`]),
  ];
  return refused.length === 0
    ? null
    : `${refused.join('; ')}: some vendors of models then refuse every tool of the request`;
}
