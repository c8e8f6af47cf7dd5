import { randomUUID } from 'node:crypto';
import {
  isLogLevel,
  LOG_LEVELS,
  type LogEntry,
  type LogLevel,
  type ProgressUpdate,
  readProgress,
} from '#agent';
import { type JsonObject, LOG_LEVEL_KEY, member } from '#dispatcher';
import { notification } from '../sse/frames.js';
import type { Speech } from '../speech.js';
import type { Carrier } from './carrier.js';
import { progressTokenOf } from './heartbeat.js';

/** Told without being asked, where a session has not said what it wants. */
const UNASKED: LogLevel = 'info';
/** Revisions from which log lines are sent and progress only where it was asked for. */
const ADDITIONS = '2025-11-25';
/** Revisions from which the progress of a token has to rise. */
const RISING = '2025-03-26';

const rank = (level: LogLevel) => LOG_LEVELS.indexOf(level);

function tokenOf(params: unknown, version: string): unknown {
  return progressTokenOf(params) ?? (version < ADDITIONS ? randomUUID() : undefined);
}

function wantedLevel(params: unknown, { era, version, logLevel }: Speech): LogLevel | null {
  if (era === 'legacy') return version < ADDITIONS ? null : (logLevel ?? UNASKED);
  const asked = member(member(params, '_meta'), LOG_LEVEL_KEY);
  return isLogLevel(asked) ? asked : null;
}

/** What a running call says beside its answer. */
export class CallVoice {
  private readonly token: unknown;
  private readonly level: LogLevel | null;
  private readonly rising: boolean;
  private last = -Infinity;

  constructor(
    private readonly carrier: Carrier,
    params: unknown,
    speech: Speech,
  ) {
    this.token = tokenOf(params, speech.version);
    this.level = wantedLevel(params, speech);
    this.rising = speech.version >= RISING;
  }

  /** A report without a finite `progress` is passed over. */
  progress(update: ProgressUpdate): void {
    const report = readProgress(update);
    if (!report || this.token === undefined || (this.rising && report.progress <= this.last)) return;
    this.last = report.progress;
    this.carrier.send(notification('notifications/progress', { progressToken: this.token, ...report }));
  }

  log({ level, data, logger }: LogEntry): void {
    if (this.level === null || rank(level) < rank(this.level)) return;
    const params: JsonObject = { level, ...(logger !== undefined && { logger }), data };
    this.carrier.send(notification('notifications/message', params));
  }
}
