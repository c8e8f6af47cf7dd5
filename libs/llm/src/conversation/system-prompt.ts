import { PARSE_CONVENTIONS } from '#dispatcher';

const ROLE =
  'You answer questions about Parse / MongoDB data with the tools you are given. ' +
  'Start with get_all_schemas, then get_schema of a class before you query it. Be concise.';

export interface SystemPromptOptions {
  /** Takes the place of everything that is said by default, the conventions included. */
  readonly systemPrompt?: string | null;
  /** Comes after it. */
  readonly systemPromptSuffix?: string | null;
}

/** What a model is told before anything else: only ever words of the operator and of this product. */
export function systemPromptOf({ systemPrompt, systemPromptSuffix }: SystemPromptOptions): string {
  const base = systemPrompt ?? `${ROLE}\n\n${PARSE_CONVENTIONS}`;
  return systemPromptSuffix ? `${base}\n\n${systemPromptSuffix}` : base;
}
