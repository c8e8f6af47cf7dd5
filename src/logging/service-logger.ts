import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import { oneLine } from '#audit';
import type { LineWriter } from './log-line.js';
import { plainLines } from './plain-lines.js';
import { Redaction } from './redaction.js';

/** Whose lines at log level are shown; the framework's own tell of its start only. */
const HEARD = new Set<unknown>(['Audit', 'Parley']);

export interface ServiceLoggerOptions {
  readonly logLevels: LogLevel[];
  /** Default: plain lines on stderr. */
  readonly write?: LineWriter;
  readonly redaction?: Redaction;
  /** What a line that is written now belongs to. Default nothing. */
  readonly fields?: () => Readonly<Record<string, string>>;
}

/** Nest's logger on stderr: stdout belongs to protocols and to the output of commands. Every message is one line. */
export class ServiceLogger extends ConsoleLogger {
  private readonly write: LineWriter;
  private readonly redaction: Redaction;
  private readonly fieldsNow: () => Readonly<Record<string, string>>;
  private readonly hearsAll: boolean;

  constructor({ logLevels, write, redaction, fields }: ServiceLoggerOptions) {
    super({ logLevels, colors: false });
    this.write = write ?? plainLines((text) => void process.stderr.write(text));
    this.redaction = redaction ?? new Redaction();
    this.fieldsNow = fields ?? (() => ({}));
    this.hearsAll = logLevels.includes('debug');
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (this.hearsAll || HEARD.has(rest.at(-1))) super.log(message, ...rest);
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

  /** Part of the line. */
  protected override printStackTrace(): void {}
}
