import type { LogLevel } from '@nestjs/common';
import type { LoggingConfig } from '#config';
import { gatheredLines } from './gathered-lines.js';
import type { LineWriter } from './log-line.js';
import { plainLines } from './plain-lines.js';
import { Redaction, secretsIn } from './redaction.js';
import { ServiceLogger } from './service-logger.js';

/** From the most to the least urgent. */
const ORDER: readonly LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];

function levelsDownTo(level: LoggingConfig['level']): LogLevel[] {
  const least = level === 'info' ? 'log' : level;
  return ORDER.slice(0, ORDER.indexOf(least ?? 'log') + 1);
}

/** Written by this thread itself: what was said before a crash is there after it. */
async function jsonOnStderr(): Promise<LineWriter> {
  const [{ jsonLines }, { pino }] = await Promise.all([import('./json-lines.js'), import('pino')]);
  return gatheredLines(jsonLines, pino.destination({ fd: process.stderr.fd, sync: true }));
}

export interface LoggerParts {
  /** Searched for what no line may hold. */
  readonly config: { readonly logging: LoggingConfig };
  readonly fields: () => Readonly<Record<string, string>>;
  /** Where the configuration names none. */
  readonly level: NonNullable<LoggingConfig['level']>;
}

/** The logger of the service. JSON is loaded only where it is written. */
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
