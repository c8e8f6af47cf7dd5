import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import type { DestinationStream, pino as Pino } from 'pino';
import { oneLine } from '#audit';
import type { LoggingConfig } from '#config';
import { sourceStack } from '../launch/source-stack.js';
import { Redaction, secretsIn } from './redaction.js';

/** One log line, without credentials, and safe for a terminal. */
export interface LogLine {
  readonly level: LogLevel;
  readonly context: string;
  readonly message: string;
  readonly stack?: string;
  /** Context of the line: trace, correlation. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Writes lines in one format. */
export type LineWriter = (line: LogLine) => void;

/** Lines for people: time, level, source, message and context. */
function plainLines(write: (text: string) => void): LineWriter {
  return ({ level, context, message, stack, fields }) => {
    const members = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
    const where = context === '' ? '' : `[${context}] `;
    const name = level === 'log' ? 'INFO' : level.toUpperCase();
    const after = stack === undefined ? '' : ` | ${stack}`;
    write(`${new Date().toISOString()} ${name.padStart(5)} ${where}${message}${members.join('')}${after}\n`);
  };
}

/** Milliseconds that a line about a call waits for others. */
const GATHERING = 10;
/** Maximum characters that wait. */
const MOST = 65_536;

/**
 * Batches the lines of calls, because a write costs a considerable part of a call. Other lines and warnings are written
 * at once, after the waiting lines. The end of the process writes the waiting lines too.
 */
export function gatheredLines(
  form: (destination: DestinationStream) => LineWriter,
  destination: DestinationStream,
): LineWriter {
  let held = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = held;
    held = '';
    if (lines !== '') destination.write(lines);
  };
  const write = form({ write: (text) => (held += text) });
  process.once('exit', flush);
  return (line) => {
    write(line);
    const waits = line.context === 'Audit' && line.level === 'log' && held.length < MOST;
    if (waits) timer ??= setTimeout(flush, GATHERING).unref();
    else flush();
  };
}

const LEVELS = {
  verbose: 'trace',
  debug: 'debug',
  log: 'info',
  warn: 'warn',
  error: 'error',
  fatal: 'fatal',
} as const satisfies Record<LogLevel, string>;

/** One JSON object per line, for log collectors. */
const jsonLines =
  (pino: typeof Pino) =>
  (destination: DestinationStream): LineWriter => {
    const log = pino(
      {
        // The level is checked before a line is created.
        level: 'trace',
        base: { pid: process.pid },
        messageKey: 'message',
        timestamp: () => `,"time":"${new Date().toISOString()}"`,
        formatters: { level: (level) => ({ level }) },
      },
      destination,
    );
    return ({ level, context, message, stack, fields }) => {
      const members = {
        ...(context !== '' && { context }),
        ...fields,
        ...(stack !== undefined && { stack }),
      };
      log[LEVELS[level]](members, message);
    };
  };

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
        ...(typeof stack === 'string' && { stack: oneLine(this.redaction.text(sourceStack(stack))) }),
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
  const { pino } = await import('pino');
  return gatheredLines(jsonLines(pino), pino.destination({ fd: process.stderr.fd, sync: true }));
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
