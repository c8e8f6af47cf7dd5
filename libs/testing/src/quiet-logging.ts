import { Logger, type LoggerService } from '@nestjs/common';

const NOWHERE: LoggerService = {
  log: () => undefined,
  error: () => undefined,
  warn: () => undefined,
};

/** Nest has one logger for the process: what it was is put back when the last application has ended. */
class ProcessLogger extends Logger {
  private static before: LoggerService | undefined;
  private static users = 0;

  static use(logger: LoggerService): () => void {
    if (ProcessLogger.users === 0) ProcessLogger.before = Logger.staticInstanceRef;
    ProcessLogger.users += 1;
    Logger.overrideLogger(logger);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      ProcessLogger.users -= 1;
      if (ProcessLogger.users === 0) Logger.staticInstanceRef = ProcessLogger.before;
    };
  }
}

/** Log lines go there, or nowhere, until the returned function is called. */
export function logTo(logger: LoggerService = NOWHERE): () => void {
  return ProcessLogger.use(logger);
}
