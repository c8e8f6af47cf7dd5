import { ALGORITHMS } from '#auth';

const text = { type: 'string', minLength: 1 } as const;
const texts = { type: 'array', items: text } as const;
const url = { type: 'string', pattern: '^https?://' } as const;
const headerName = { type: 'string', pattern: '^[A-Za-z0-9-]+$' } as const;

/** A claim, or the names that lead to one inside others. */
export const CLAIM_SCHEMA = { anyOf: [text, { type: 'array', minItems: 1, items: text }] } as const;

const OAUTH = {
  type: 'object',
  additionalProperties: false,
  required: ['issuer', 'audience'],
  properties: {
    issuer: url,
    audience: { anyOf: [text, { type: 'array', minItems: 1, items: text }] },
    scopes: { type: 'object', additionalProperties: text },
    requiredScopes: texts,
    scopeClaim: CLAIM_SCHEMA,
    jwksUri: url,
    algorithms: { type: 'array', minItems: 1, items: { enum: [...ALGORITHMS] } },
    clockSkew: { type: 'number', minimum: 0, maximum: 300 },
    maxTokenLength: { type: 'integer', minimum: 256, maximum: 16_384 },
    keyOutage: { type: 'number', minimum: 60, maximum: 604_800 },
    introspection: {
      type: 'object',
      additionalProperties: false,
      required: ['clientId', 'clientSecret'],
      properties: {
        endpoint: url,
        clientId: text,
        clientSecret: text,
        cache: { type: 'number', minimum: 0, maximum: 300 },
      },
    },
    revocationList: { type: 'boolean' },
  },
} as const;

/** One entry of `auth` as JSON Schema; `auth-rule-faults.ts` adds what a schema cannot say. */
export const AUTH_RULE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['agent'],
  properties: {
    agent: text,
    apiKey: text,
    apiKeyHash: text,
    anonymous: { const: true },
    parseSession: { const: true },
    clientCertificate: {
      type: 'object',
      additionalProperties: false,
      required: ['header', 'trustedProxies', 'subjects'],
      properties: {
        header: headerName,
        verified: {
          type: 'object',
          additionalProperties: false,
          required: ['header', 'value'],
          properties: { header: headerName, value: text },
        },
        trustedProxies: { ...texts, minItems: 1 },
        subjects: { ...texts, minItems: 1 },
      },
    },
    oauth: OAUTH,
  },
} as const;
