import { randomUUID } from 'node:crypto';
import { type JsonObject, member } from '#dispatcher';
import { notification } from '../sse/frames.js';

const PROGRESS = 'notifications/progress';
/** The first revision that hears nothing but comments where it asked for no progress. */
const COMMENTS = '2025-11-25';
/** The part of a tool's own unit that a second is: what a heartbeat says stays below what a tool reports. */
const SECOND = 1e-6;

/** The token under which a client wants to hear of the progress of its request. */
export function progressTokenOf(params: unknown): string | number | undefined {
  const token = member(member(params, '_meta'), 'progressToken');
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** What a stream says next while its call is silent: a notification, a comment, or nothing. */
export type Beat = JsonObject | 'comment' | null;

/**
 * The signs of life of one call, until its tool reports for the first time. A client that gave a token hears them under it, in
 * every revision, so that it does not take a slow and silent tool for a lost one. Without a token the revisions up to
 * 2025-06-18 hear seconds under a token of ours, later ones a comment.
 */
export class Heartbeat {
  private readonly begun = performance.now();
  private readonly late: boolean;
  private ownToken: string | undefined;
  private last = -Infinity;
  private reported = false;

  /** @param token the client's */
  constructor(
    private readonly token: string | number | undefined,
    version: string,
  ) {
    this.late = version >= COMMENTS;
  }

  /** Whether a client waits for them under its own token. */
  get isAskedFor(): boolean {
    return this.token !== undefined;
  }

  /** @param now milliseconds of the monotonic clock */
  next(now: number): Beat {
    if (this.reported || (this.token === undefined && this.late)) return this.late ? 'comment' : null;
    const seconds = ((now - this.begun) / 1000).toFixed(1);
    const progress =
      this.token === undefined ? Number(seconds) : Number((Number(seconds) * SECOND).toFixed(7));
    // A token's progress rises: beats closer than its resolution would repeat themselves.
    if (progress <= this.last) return this.late ? 'comment' : null;
    this.last = progress;
    if (this.token !== undefined)
      return notification(PROGRESS, {
        progressToken: this.token,
        progress,
        message: `running for ${seconds} s`,
      });
    // Seconds and units of work are different scales, so they never share a token.
    this.ownToken ??= `parley:heartbeat:${randomUUID()}`;
    return notification(PROGRESS, { progressToken: this.ownToken, progress });
  }

  /**
   * To be asked of every message beside the answer: the first report of the tool ends the beats. One that says no more than
   * they did, as a report of 0 does, is lifted above them, because the progress of a token rises.
   */
  passing(message: JsonObject): JsonObject {
    if (message.method !== PROGRESS) return message;
    this.reported = true;
    const progress = member(message.params, 'progress');
    if (this.token === undefined || typeof progress !== 'number') return message;
    if (progress > this.last) {
      this.last = progress;
      return message;
    }
    // Doubles have no room for so little beside a large number; there the message goes as it is.
    this.last = Math.max(Number((this.last + SECOND / 10).toFixed(7)), this.last);
    return { ...message, params: { ...(message.params as JsonObject), progress: this.last } };
  }
}
