import { ConsoleLogger, type ConsoleLoggerOptions, type LogLevel } from '@nestjs/common';

/** Whose lines at log level are shown; the framework's own tell of its start only. */
const HEARD = 'Audit';

/** Nest's console logger on stderr: stdout belongs to protocols and to the output of commands. */
export class StderrLogger extends ConsoleLogger {
  constructor(options: ConsoleLoggerOptions = {}) {
    super({ colors: process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined, ...options });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (rest.at(-1) === HEARD) super.log(message, ...rest);
  }

  protected override printMessages(messages: unknown[], context?: string, logLevel?: LogLevel): void {
    super.printMessages(messages, context, logLevel, 'stderr');
  }
}
