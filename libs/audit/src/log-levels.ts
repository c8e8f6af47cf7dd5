import { ConsoleLogger, Logger, type LogLevel } from '@nestjs/common';

/** What the logger of the application writes, in the versions of NestJS that Parley runs in. */
export class LogLevels extends Logger {
  static isEnabled(level: LogLevel): boolean {
    const logger = this.staticInstanceRef;
    if (logger instanceof ConsoleLogger) return logger.isLevelEnabled(level);
    // NestJS 11 calls every level disabled while none are set; any that are set enable the highest.
    return Logger.isLevelEnabled(level) || !Logger.isLevelEnabled('fatal');
  }
}
