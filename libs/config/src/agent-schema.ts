import { TOOL_PROFILES } from '#agent';
import { USER_FIELDS } from '#auth';
import { BUDGET_CONFIG_SCHEMA } from '#policy';
import { CLAIM_SCHEMA } from './auth-rule-schema.js';
import { AGENT_LLM_SCHEMA } from './llm-schema.js';

const strings = { type: 'array', items: { type: 'string', minLength: 1 } } as const;
const nameFilter = {
  anyOf: [
    strings,
    { type: 'null' },
    { type: 'object', additionalProperties: false, properties: { only: strings, except: strings } },
  ],
} as const;

/** An id, or a pointer. */
const reference = { type: ['string', 'object'] } as const;
const label = { type: 'string' } as const;

/** One entry of `agents` as JSON Schema; `agent-identity.ts` adds what a schema cannot say. */
export const AGENT_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    permissions: { enum: ['readonly', 'write', 'admin'] },
    permission: { enum: ['readonly', 'write', 'admin'] },
    identity: {
      anyOf: [
        { const: 'master' },
        {
          type: 'object',
          additionalProperties: false,
          required: ['session'],
          properties: { session: { const: 'caller' } },
        },
        {
          type: 'object',
          additionalProperties: false,
          required: ['user'],
          properties: { user: { type: 'string' }, label },
        },
        {
          type: 'object',
          additionalProperties: false,
          required: ['claim'],
          properties: { claim: CLAIM_SCHEMA, field: { enum: [...USER_FIELDS] }, label },
        },
        {
          type: 'object',
          additionalProperties: false,
          required: ['impersonate'],
          properties: { impersonate: { type: 'string' }, mint: { type: 'boolean' }, label },
        },
        {
          type: 'object',
          additionalProperties: false,
          required: ['role'],
          properties: { role: { type: 'string' }, label },
        },
      ],
    },
    llm: AGENT_LLM_SCHEMA,
    sessionToken: { type: 'string' },
    aclUser: reference,
    aclRole: reference,
    impersonateUser: reference,
    impersonationUser: reference,
    impersonateMint: { type: 'boolean' },
    impersonationMint: { type: 'boolean' },
    impersonationLabel: label,
    impersonateLabel: label,
    tools: {
      anyOf: [
        ...nameFilter.anyOf,
        {
          type: 'object',
          additionalProperties: false,
          required: ['profile'],
          properties: { profile: { enum: TOOL_PROFILES } },
        },
      ],
    },
    methods: nameFilter,
    classes: nameFilter,
    filters: { type: 'object', additionalProperties: { type: 'object' } },
    tenantId: {
      anyOf: [
        { type: ['string', 'number', 'null'] },
        {
          type: 'object',
          additionalProperties: false,
          required: ['claim'],
          properties: { claim: CLAIM_SCHEMA, required: { type: 'boolean' } },
        },
      ],
    },
    allowMutations: { type: 'boolean' },
    clientMode: { type: 'boolean' },
    masterAtlas: { type: ['boolean', 'null'] },
    rateLimit: { type: 'integer', minimum: 1 },
    rateWindow: { type: 'number', exclusiveMinimum: 0 },
    budget: BUDGET_CONFIG_SCHEMA,
    recursionDepth: { type: 'integer', minimum: 0 },
    strictToolFilter: { type: 'boolean' },
    strictClassFilter: { type: 'boolean' },
  },
} as const;
