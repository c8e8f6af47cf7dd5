import { AsyncLocalStorage } from 'node:async_hooks';
import { Logger, type LoggerService } from '@nestjs/common';

/** The contexts of the lines that Nest writes while an application starts. */
const OF_THE_START = new Set<unknown>([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

const INNER = new AsyncLocalStorage<boolean>();

/**
 * An instance is a Nest application of its own. Its start lines would stand beside those of the application around it, which
 * has modules and routes of the same kind. Nest has one logger for a process, so they are recognised by the start they come from.
 */
class InnerStart extends Logger {
  private static running = 0;
  private static before: LoggerService | undefined;
  private static filter: LoggerService | undefined;

  static async run<T>(start: () => Promise<T>): Promise<T> {
    this.begin();
    try {
      return await INNER.run(true, start);
    } finally {
      this.end();
    }
  }

  private static begin(): void {
    this.running += 1;
    const logger = this.staticInstanceRef;
    if (logger === undefined || logger === this.filter) return;
    this.before = logger;
    this.filter = withoutInnerStart(logger);
    Logger.overrideLogger(this.filter);
  }

  /** Leaves a logger that the application chose meanwhile. */
  private static end(): void {
    this.running -= 1;
    if (this.running > 0) return;
    if (this.before !== undefined && this.staticInstanceRef === this.filter)
      Logger.overrideLogger(this.before);
    this.before = undefined;
    this.filter = undefined;
    // Async tracking slows every promise of the process.
    INNER.disable();
  }
}

function withoutInnerStart(logger: LoggerService): LoggerService {
  return new Proxy(logger, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      if (key !== 'log') return value.bind(target) as unknown;
      return (message: unknown, ...rest: unknown[]) => {
        if (INNER.getStore() !== true || !OF_THE_START.has(rest.at(-1)))
          Reflect.apply(value, target, [message, ...rest]);
      };
    },
  });
}

/** Starts a Nest application inside an application. Its warnings and errors are logged, its start lines are not. */
export const startInside = <T>(start: () => Promise<T>): Promise<T> => InnerStart.run(start);
