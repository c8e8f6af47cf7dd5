import { setTimeout as pause } from 'node:timers/promises';
import { signedPost } from '#audit';
import type { ApprovalCase } from '#cluster';

export interface ApprovalWebhookOptions {
  readonly url: string;
  /** Signs what is sent. */
  readonly secret: string;
  /** Milliseconds for each attempt. Default 5,000. */
  readonly timeout?: number;
  /** Milliseconds before the second attempt; twice as many before each later one. Default 1,000. */
  readonly delay?: number;
  readonly log: { warn(line: string): void };
}

const ATTEMPTS = 3;
/** Announcements under way at once: more are dropped, and approvers find the cases by listing them. */
const MAX_UNDER_WAY = 100;

/**
 * Tells somebody else's system that a case waits. It never holds a value of a row or an argument: whoever may see them looks
 * at the case. Nothing waits for it, and one that fails changes nothing.
 */
export class ApprovalWebhook {
  private readonly underWay = new Map<Promise<void>, AbortController>();

  constructor(private readonly options: ApprovalWebhookOptions) {}

  announce(opened: ApprovalCase): void {
    if (this.underWay.size >= MAX_UNDER_WAY) {
      this.options.log.warn(`approval ${opened.id} is not announced: too many announcements are under way`);
      return;
    }
    const stop = new AbortController();
    const sending = this.send(opened, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted)
          this.options.log.warn(`approval ${opened.id} could not be announced: ${nameOf(error)}`);
      })
      .finally(() => this.underWay.delete(sending));
    this.underWay.set(sending, stop);
  }

  /** Gives up what is under way. */
  async close(): Promise<void> {
    for (const stop of this.underWay.values()) stop.abort();
    await Promise.all(this.underWay.keys());
  }

  private async send(opened: ApprovalCase, stop: AbortSignal): Promise<void> {
    const { url, secret, timeout = 5_000 } = this.options;
    const body = JSON.stringify(announcementOf(opened));
    for (let attempt = 1; ; attempt++) {
      try {
        return await signedPost({ url, secret, body, timeout, stop });
      } catch (error) {
        if (attempt === ATTEMPTS || stop.aborted) throw error;
      }
      await pause((this.options.delay ?? 1_000) * 2 ** (attempt - 1), undefined, { signal: stop });
    }
  }
}

function announcementOf({ id, tool, permission, requester, requestedAt, expiresAt }: ApprovalCase) {
  return {
    type: 'approval.requested',
    id,
    tool,
    permission,
    agent: requester.agent,
    ...(requester.tenant !== null && { tenant: requester.tenant }),
    requested_at: new Date(requestedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}

/** Without the address, which may hold a secret. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown fault';
  return error.message.startsWith('answered ') ? error.message : error.name;
}
