import { ConsoleLogger, type ConsoleLoggerOptions, type LogLevel } from '@nestjs/common';

/** Nest's console logger on stderr: stdout belongs to protocols and to the output of commands. */
export class StderrLogger extends ConsoleLogger {
  constructor(options: ConsoleLoggerOptions = {}) {
    super({ colors: process.stderr.isTTY === true && process.env['NO_COLOR'] === undefined, ...options });
  }

  protected override printMessages(messages: unknown[], context?: string, logLevel?: LogLevel): void {
    super.printMessages(messages, context, logLevel, 'stderr');
  }
}
