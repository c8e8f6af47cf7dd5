import type { CallerTraces } from '#telemetry';
import { IsBoolean, IsIn, IsInt, IsNumber, IsString, Matches, Max, Min } from 'class-validator';
import { Nullable } from '#schema';
import { IsText, MapOf, Option, type Plain } from '../schema/option.js';

/** What can stand in a header. */
const HEADER_TEXT = '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$';

/** The section `traces`: where spans go (docs/operations/observability.md). Off by default, unless the `OTEL_*` variables name a place. */
export class TracesSection {
  // A URL with a password in it would be logged by whatever logs the URL.
  @Option('OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`')
  @IsString()
  @Matches(/^https?:\/\/[^\s@]+$/, {
    message: 'a URL with http:// or https://, without a password or blanks',
  })
  @Nullable()
  readonly endpoint: string | null = null;

  @Option('headers of each export, for collectors that need a credential')
  @MapOf(
    {
      type: 'string',
      pattern: HEADER_TEXT,
      description: 'text of ASCII characters',
    },
    { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", description: 'the name of a header' },
  )
  readonly headers: Readonly<Record<string, string>> = {};

  @Option('share of the requests that are traced, 0 to 1')
  @IsNumber()
  @Min(0)
  @Max(1)
  readonly ratio: number = 1;

  @Option(
    'how the trace context of a caller is used: [`continue`, `follow`, `restart`](observability.md#callers)',
  )
  @IsIn(['continue', 'follow', 'restart'])
  readonly callers: CallerTraces = 'continue';
}

/** The section `metrics`: a listener of its own. */
export class MetricsSection {
  @Option(
    'the port of [`GET /metrics`](observability.md#metrics), on a separate listener; 0: any free port; null: no metrics',
  )
  @IsInt()
  @Min(0)
  @Max(65_535)
  @Nullable()
  readonly port: number | null = null;

  @Option('address to listen on; the metrics need no credentials')
  @IsText()
  readonly host: string = '127.0.0.1';

  @Option('whether metrics of calls and results have the label `agent`')
  @IsBoolean()
  readonly agentLabel: boolean = false;
}

/** The section `logging`. */
export class LoggingSection {
  @Option('`error`, `warn`, `info` or `debug`; null: `info`, and `warn` in `parley stdio`')
  @IsIn(['error', 'warn', 'info', 'debug', null])
  readonly level: 'error' | 'warn' | 'info' | 'debug' | null = null;

  @Option('`json`, `plain`, or `auto`: plain on a terminal, JSON elsewhere')
  @IsIn(['auto', 'json', 'plain'])
  readonly format: 'auto' | 'json' | 'plain' = 'auto';
}

export type LoggingConfig = Plain<LoggingSection>;
