import { POLICY_CONFIG_SCHEMA } from '#policy';
import { AGENT_SCHEMA } from './agent-schema.js';
import { LLM_SCHEMA } from './llm-schema.js';
import { OBSERVABILITY_SCHEMAS } from './observability-config.js';
import { AUDIT_SCHEMA } from './audit-config.js';
import { AUTH_RULE_SCHEMA } from './auth-rule-schema.js';

const strings = { type: 'array', items: { type: 'string', minLength: 1 } } as const;
const url = { type: ['string', 'null'], pattern: '^[a-z]+://' } as const;
/** What can stand in a header. */
const headerValue = { type: ['string', 'null'], pattern: '^[\\x21-\\x7e]+$' } as const;
const RATE_LIMIT = {
  type: ['object', 'null'],
  additionalProperties: false,
  required: ['limit', 'window'],
  properties: { limit: { type: 'integer', minimum: 1 }, window: { type: 'number', exclusiveMinimum: 0 } },
} as const;

const SERVER = {
  type: 'object',
  additionalProperties: false,
  properties: {
    host: { type: 'string', minLength: 1 },
    port: { type: 'integer', minimum: 0, maximum: 65535 },
    path: { type: 'string', pattern: '^/[A-Za-z0-9/_-]*$' },
    publicUrl: { type: ['string', 'null'], pattern: '^https?://' },
    maxBodySize: { type: 'integer', minimum: 1 },
    heartbeatInterval: { type: 'number' },
    maxRunningCalls: { type: ['integer', 'null'], minimum: 1 },
    maxConcurrentDispatchers: { type: ['integer', 'null'], minimum: 1 },
    maxConnections: { type: 'integer', minimum: 1 },
    allowedOrigins: strings,
    allowedHosts: strings,
    requireCustomHeader: {
      anyOf: [
        { type: 'null' },
        { type: 'string', minLength: 1 },
        { type: 'object', minProperties: 1, maxProperties: 1, additionalProperties: { type: 'string' } },
      ],
    },
    requireContentLength: { type: 'boolean' },
    approvalTimeout: { type: 'number', exclusiveMinimum: 0, maximum: 86_400 },
    stateKey: { type: ['string', 'null'], minLength: 32 },
    previousStateKeys: { type: 'array', items: { type: 'string', minLength: 32 } },
    sessions: { enum: ['lenient', 'strict'] },
    drainTimeout: { type: 'number', minimum: 0, maximum: 3600 },
    preAuthRateLimit: RATE_LIMIT,
    requestRateLimit: RATE_LIMIT,
  },
} as const;

const EMBEDDINGS = {
  type: ['object', 'null'],
  additionalProperties: false,
  required: ['endpoint', 'model', 'dimensions'],
  properties: {
    endpoint: { type: 'string', pattern: '^https?://' },
    model: { type: 'string', minLength: 1 },
    apiKey: { type: ['string', 'null'], minLength: 1 },
    dimensions: { type: 'integer', minimum: 1, maximum: 8192 },
    requestDimensions: { type: 'boolean' },
    timeout: { type: 'number', exclusiveMinimum: 0, maximum: 60 },
    cacheSize: { type: 'integer', minimum: 0, maximum: 100_000 },
    budget: {
      type: ['object', 'null'],
      additionalProperties: false,
      required: ['tokens', 'window'],
      properties: {
        tokens: { type: 'integer', minimum: 1 },
        window: { type: 'number', exclusiveMinimum: 0 },
      },
    },
  },
} as const;

/** The configuration file as JSON Schema; `config-faults.ts` adds what a schema cannot say. */
export const CONFIG_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    server: SERVER,
    database: {
      type: 'object',
      additionalProperties: false,
      properties: {
        uri: { type: ['string', 'null'], pattern: '^(embedded|mongodb(\\+srv)?://.+)$' },
        name: { type: 'string', pattern: '^[^/\\\\. "$*<>:|?\\u0000]{1,63}$' },
        seed: { type: ['string', 'null'] },
      },
    },
    parse: {
      type: 'object',
      additionalProperties: false,
      properties: {
        serverUrl: url,
        appId: headerValue,
        masterKey: headerValue,
        restApiKey: headerValue,
        liveQueryUrl: url,
      },
    },
    redis: {
      type: 'object',
      additionalProperties: false,
      properties: {
        url: { type: ['string', 'null'], pattern: '^rediss?://' },
        prefix: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$' },
      },
    },
    reload: {
      type: 'object',
      additionalProperties: false,
      properties: {
        watch: { type: 'boolean' },
        interval: { type: 'number', minimum: 0.1, maximum: 3600 },
      },
    },
    subscriptions: {
      type: 'object',
      additionalProperties: false,
      properties: {
        debounce: { type: 'number' },
        maxPerSession: { type: 'integer', minimum: 1 },
        maxSessions: { type: 'integer', minimum: 1 },
      },
    },
    tasks: {
      type: 'object',
      additionalProperties: false,
      properties: {
        lifetime: { type: 'number', minimum: 1 },
        pollInterval: { type: 'number', minimum: 0.1 },
        heartbeat: { type: 'number', minimum: 0.1 },
        concurrency: { type: 'integer', minimum: 1 },
        maxPerPrincipal: { type: 'integer', minimum: 1 },
      },
    },
    exports: {
      type: 'object',
      additionalProperties: false,
      properties: {
        lifetime: { type: 'number', minimum: 1 },
        maxRows: { type: 'integer', minimum: 1 },
        maxPerPrincipal: { type: 'integer', minimum: 1 },
      },
    },
    llm: LLM_SCHEMA,
    approvals: {
      type: 'object',
      additionalProperties: false,
      properties: {
        mode: { enum: ['client', 'desk', 'both'] },
        approvers: strings,
        webhook: {
          type: ['object', 'null'],
          additionalProperties: false,
          required: ['url', 'secret'],
          properties: {
            url: { type: 'string', pattern: '^https?://' },
            secret: { type: 'string', minLength: 16 },
          },
        },
        expiry: { type: 'number', exclusiveMinimum: 0, maximum: 604_800 },
      },
    },
    console: {
      type: 'object',
      additionalProperties: false,
      properties: { operators: { anyOf: [strings, { type: 'null' }] } },
    },
    audit: AUDIT_SCHEMA,
    embeddings: EMBEDDINGS,
    ...OBSERVABILITY_SCHEMAS,
    plugins: strings,
    ungoverned: {
      type: 'array',
      items: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9._-]{0,63}$' },
      uniqueItems: true,
    },
    agents: {
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$' },
      additionalProperties: AGENT_SCHEMA,
    },
    auth: { type: 'array', items: AUTH_RULE_SCHEMA },
    policy: POLICY_CONFIG_SCHEMA,
  },
} as const;
