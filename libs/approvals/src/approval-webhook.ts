import { setTimeout as pause } from 'node:timers/promises';
import { errorName, postSigned } from '#audit';
import type { ApprovalCase } from '#state';

export interface ApprovalWebhookOptions {
  readonly url: string;
  /** Key of the signature. */
  readonly secret: string;
  /** Milliseconds for each attempt. Default 5,000. */
  readonly timeout?: number;
  /** Milliseconds before the second attempt, doubled for each later one. Default 1,000. */
  readonly delay?: number;
  readonly log: { warn(line: string): void };
}

const MAX_ATTEMPTS = 3;
/** Concurrent announcements, of all and of one requester. Further ones are dropped; approvers still find the cases in the list. */
const MAX_UNDER_WAY = { total: 100, perPrincipal: 25 };

interface Announcement {
  readonly principal: string;
  readonly stop: AbortController;
}

/**
 * Announces new cases to an external system, without values of rows or arguments. Calls do not wait for it, and its
 * failures have no effect on them.
 */
export class ApprovalWebhook {
  private readonly underWay = new Map<Promise<void>, Announcement>();

  constructor(private readonly options: ApprovalWebhookOptions) {}

  announce(opened: ApprovalCase): void {
    const { principal } = opened.requester;
    const own = [...this.underWay.values()].filter((known) => known.principal === principal).length;
    if (this.underWay.size >= MAX_UNDER_WAY.total || own >= MAX_UNDER_WAY.perPrincipal) {
      this.options.log.warn(`approval ${opened.id} is not announced: too many announcements are running`);
      return;
    }
    const stop = new AbortController();
    const sending = this.send(opened, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted)
          this.options.log.warn(`approval ${opened.id} could not be announced: ${errorName(error)}`);
      })
      .finally(() => this.underWay.delete(sending));
    this.underWay.set(sending, { principal, stop });
  }

  /** Aborts running announcements. */
  async close(): Promise<void> {
    for (const { stop } of this.underWay.values()) stop.abort();
    await Promise.all(this.underWay.keys());
  }

  private async send(opened: ApprovalCase, stop: AbortSignal): Promise<void> {
    const { url, secret, timeout = 5_000 } = this.options;
    const body = JSON.stringify(buildAnnouncement(opened));
    for (let attempt = 1; ; attempt++) {
      try {
        return await postSigned({ url, secret, body, timeout, stop });
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || stop.aborted) throw error;
      }
      await pause((this.options.delay ?? 1_000) * 2 ** (attempt - 1), undefined, { signal: stop });
    }
  }
}

function buildAnnouncement({ id, tool, permission, requester, requestedAt, expiresAt }: ApprovalCase) {
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
