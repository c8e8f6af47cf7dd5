import { type Agent, sanitizeCorrelationId, Unauthorized } from '#agent';
import type { AuditSink } from '#audit';
import type { Authenticator, CredentialSource } from './authenticator.js';
import { OuterAuthenticator } from './outer-authenticator.js';

/** Refusals written down one by one in a second: whoever tries keys must not fill the record with it. */
const PER_SECOND = 10;

/** Writes down who was not let in, and never with what. Whoever showed no credential did not try to get in. */
export class RecordedAuthenticator extends OuterAuthenticator {
  private second = 0;
  private inSecond = 0;
  private suppressed = 0;

  constructor(
    private readonly authenticator: Authenticator,
    private readonly audit: Pick<AuditSink, 'recordEvent'>,
    private readonly now: () => number = Date.now,
  ) {
    super();
  }

  override async authenticate(request: CredentialSource): Promise<Agent> {
    try {
      return await super.authenticate(request);
    } catch (error) {
      if (error instanceof Unauthorized && this.showsCredential(request)) this.recordRefused(request, error);
      throw error;
    }
  }

  protected inner(): Authenticator {
    return this.authenticator;
  }

  /** Also for credentials that are judged elsewhere, such as a cookie. */
  recordRefused(
    { remoteAddress, headers }: Pick<CredentialSource, 'remoteAddress' | 'headers'>,
    { cause }: Pick<Unauthorized, 'cause'>,
  ): void {
    const at = this.now();
    const second = Math.floor(at / 1000);
    if (second !== this.second) this.inSecond = 0;
    this.second = second;
    this.inSecond += 1;
    if (this.inSecond > PER_SECOND) {
      this.suppressed += 1;
      return;
    }
    const named = headers['mcp-session-id'];
    const correlationId = sanitizeCorrelationId(typeof named === 'string' ? named : undefined);
    this.audit.recordEvent({
      type: 'authentication',
      at: new Date(at).toISOString(),
      success: false,
      ...(remoteAddress !== undefined && { remote_address: remoteAddress }),
      ...(correlationId !== undefined && { correlation_id: correlationId }),
      ...(cause !== undefined && { cause }),
      ...(this.suppressed > 0 && { suppressed: this.suppressed }),
    });
    this.suppressed = 0;
  }
}
