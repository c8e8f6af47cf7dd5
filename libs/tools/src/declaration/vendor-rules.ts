import type { ToolDefinition } from '../tool.js';

/** Names that OpenAI, Anthropic and Gemini all accept. MCP permits dots and 128 characters as well. */
const ACCEPTED_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
const MAX_DESCRIPTION = 1024;
const COMBINATIONS = ['anyOf', 'oneOf', 'allOf'] as const;

/** Null: the name is accepted. */
export const nameWarning = (name: string): string | null =>
  ACCEPTED_NAME.test(name) ? null : 'the name is not 1 to 64 of A-Z a-z 0-9 _ - with a letter or _ in front';

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
    ...(combined === undefined ? [] : [`the input has ${combined} beside its properties`]),
  ];
  return refused.length === 0
    ? null
    : `${refused.join('; ')}: some vendors of models then refuse every tool of the request`;
}
