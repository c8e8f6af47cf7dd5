import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import { oneLine } from '#audit';
import type { LoggingConfig } from '#config';
import { gatheredLines, type LineWriter, plainLines } from './log-lines.js';
import { Redaction, secretsIn } from './redaction.js';

/** Contexts whose lines at log level are shown; those of the framework only report its start. */
const SHOWN_CONTEXTS = new Set<unknown>(['Audit', 'Parley']);

export interface ServiceLoggerOptions {
  readonly logLevels: LogLevel[];
  /** Default: plain lines on stderr. */
  readonly write?: LineWriter;
  readonly redaction?: Redaction;
  /** The current context of a line. Default none. */
  readonly fields?: () => Readonly<Record<string, string>>;
}

/** Nest's logger on stderr: stdout is reserved for protocols and command output. Every message is one line. */
export class ServiceLogger extends ConsoleLogger {
  private readonly write: LineWriter;
  private readonly redaction: Redaction;
  private readonly fieldsNow: () => Readonly<Record<string, string>>;
  private readonly showsAll: boolean;

  constructor({ logLevels, write, redaction, fields }: ServiceLoggerOptions) {
    super({ logLevels, colors: false });
    this.write = write ?? plainLines((text) => void process.stderr.write(text));
    this.redaction = redaction ?? new Redaction();
    this.fieldsNow = fields ?? (() => ({}));
    this.showsAll = logLevels.includes('debug');
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (this.showsAll || SHOWN_CONTEXTS.has(rest.at(-1))) super.log(message, ...rest);
  }

  protected override printMessages(
    messages: unknown[],
    context = '',
    level: LogLevel = 'log',
    _stream?: 'stdout' | 'stderr',
    stack?: unknown,
  ): void {
    for (const message of messages) {
      const safe = this.redaction.value(message);
      this.write({
        level,
        context: oneLine(context),
        message: oneLine(typeof safe === 'string' ? safe : (JSON.stringify(safe) ?? String(safe))),
        fields: this.fieldsNow(),
        ...(typeof stack === 'string' && { stack: oneLine(this.redaction.text(stack)) }),
      });
    }
  }

  /** The stack is part of the line. */
  protected override printStackTrace(): void {}
}

/** From the most to the least urgent. */
const ORDER: readonly LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];

function levelsDownTo(level: LoggingConfig['level']): LogLevel[] {
  const least = level === 'info' ? 'log' : level;
  return ORDER.slice(0, ORDER.indexOf(least ?? 'log') + 1);
}

/** Written synchronously, so that the lines before a crash are kept. */
async function jsonOnStderr(): Promise<LineWriter> {
  const [{ jsonLines }, { pino }] = await Promise.all([import('./json-lines.js'), import('pino')]);
  return gatheredLines(jsonLines, pino.destination({ fd: process.stderr.fd, sync: true }));
}

export interface LoggerParts {
  /** Source of the secrets that lines must not contain. */
  readonly config: { readonly logging: LoggingConfig };
  readonly fields: () => Readonly<Record<string, string>>;
  /** The level when the configuration has none. */
  readonly level: NonNullable<LoggingConfig['level']>;
}

/** The logger of the service. The JSON format is loaded only where it is used. */
export async function openLogger({ config, fields, level }: LoggerParts): Promise<ServiceLogger> {
  const { format } = config.logging;
  const plain = format === 'plain' || (format === 'auto' && process.stderr.isTTY === true);
  const write = plain ? plainLines((text) => void process.stderr.write(text)) : await jsonOnStderr();
  return new ServiceLogger({
    logLevels: levelsDownTo(config.logging.level ?? level),
    write,
    redaction: new Redaction(secretsIn(config)),
    fields,
  });
}
