import type { CallerTraces } from '#telemetry';

/** Where spans go (docs/observability.md). Off by default, unless the standard `OTEL_*` variables say where. */
export interface TracesConfig {
  /** OTLP over HTTP. Default null: as the environment says, or nowhere. */
  readonly endpoint: string | null;
  /** Sent along, as a collector may ask for a credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** Share of the requests that are traced, 0 to 1. Default 1. */
  readonly ratio: number;
  /** What the trace context of a caller is worth. Default `continue`. */
  readonly callers: CallerTraces;
  /** Default `parley`; `OTEL_SERVICE_NAME` wins. */
  readonly serviceName: string;
}

export interface MetricsConfig {
  /** Of a listener of its own; 0 takes a free one. Default null: no metrics. */
  readonly port: number | null;
  /** Default `127.0.0.1`. It asks nobody who they are. */
  readonly host: string;
}

export interface LoggingConfig {
  /** The least urgent lines that are written. Default null: `info`, and `warn` in `parley stdio`. */
  readonly level: 'error' | 'warn' | 'info' | 'debug' | null;
  /** `auto`: plain on a terminal, JSON elsewhere. */
  readonly format: 'auto' | 'json' | 'plain';
}

export const DEFAULT_TRACES: TracesConfig = Object.freeze({
  endpoint: null,
  headers: {},
  ratio: 1,
  callers: 'continue',
  serviceName: 'parley',
});

export const DEFAULT_METRICS: MetricsConfig = Object.freeze({ port: null, host: '127.0.0.1' });

export const DEFAULT_LOGGING: LoggingConfig = Object.freeze({ level: null, format: 'auto' });

/** What can stand in a header. */
const HEADER_TEXT = '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$';

export const OBSERVABILITY_SCHEMAS = {
  traces: {
    type: 'object',
    additionalProperties: false,
    properties: {
      // A URL with a password in it would be told by whatever tells the URL.
      endpoint: { type: ['string', 'null'], pattern: '^https?://[^\\s@]+$' },
      headers: {
        type: 'object',
        propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" },
        additionalProperties: { type: 'string', pattern: HEADER_TEXT },
      },
      ratio: { type: 'number', minimum: 0, maximum: 1 },
      callers: { enum: ['continue', 'follow', 'restart'] },
      serviceName: { type: 'string', pattern: '^[\\x21-\\x7e]{1,128}$' },
    },
  },
  metrics: {
    type: 'object',
    additionalProperties: false,
    properties: {
      port: { type: ['integer', 'null'], minimum: 0, maximum: 65535 },
      host: { type: 'string', minLength: 1 },
    },
  },
  logging: {
    type: 'object',
    additionalProperties: false,
    properties: {
      level: { enum: ['error', 'warn', 'info', 'debug', null] },
      format: { enum: ['auto', 'json', 'plain'] },
    },
  },
} as const;
