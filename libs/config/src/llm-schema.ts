const text = { type: ['string', 'null'], minLength: 1 } as const;

/** The section `llm` as JSON Schema. The names of providers stand here too: a service that asks no model loads no client. */
export const LLM_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    provider: { enum: ['openai', 'anthropic', 'lmstudio', null] },
    model: text,
    endpoint: { type: ['string', 'null'], pattern: '^https?://' },
    apiKey: text,
    allowedEndpoints: { type: ['array', 'null'], items: { type: 'string', minLength: 1 } },
    systemPrompt: text,
    systemPromptSuffix: text,
    timeout: { type: 'number', exclusiveMinimum: 0, maximum: 3600 },
    retries: { type: 'integer', minimum: 0, maximum: 10 },
    maxTokens: { type: 'integer', minimum: 1 },
    maxIterations: { type: 'integer', minimum: 1, maximum: 100 },
    maxContextTokens: { type: 'integer', minimum: 1000 },
    maxResultCharacters: { type: 'integer', minimum: 100 },
    autoCompactAt: { type: ['integer', 'null'], minimum: 1 },
    prices: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['input', 'output'],
        properties: { input: { type: 'number', minimum: 0 }, output: { type: 'number', minimum: 0 } },
      },
    },
  },
} as const;

const { model, systemPrompt, systemPromptSuffix, prices, autoCompactAt } = LLM_SCHEMA.properties;
const { maxTokens, maxIterations, maxContextTokens, maxResultCharacters } = LLM_SCHEMA.properties;

/** `agents.X.llm`: what one agent may have of its own. Where texts go, and with whose key, is the installation's alone. */
export const AGENT_LLM_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    model,
    systemPrompt,
    systemPromptSuffix,
    maxTokens,
    maxIterations,
    maxContextTokens,
    maxResultCharacters,
    autoCompactAt,
    prices,
  },
} as const;
