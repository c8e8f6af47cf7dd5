import { type Agent, sanitizeCorrelationId, Unauthorized } from '#agent';
import type { AuditSink } from '#audit';
import { type CredentialSource, mayPresentCredential } from './credentials.js';

/** An agent that more scopes would lead to. */
export interface StepUp {
  /** All that are needed, those the caller has included. */
  readonly scopes: readonly string[];
  readonly shape: Agent['shape'];
}

/** Turns a request's credentials into the agent it runs as. Asked at most once per request. */
export abstract class Authenticator {
  /** Value of `WWW-Authenticate` on a 401 to whoever showed nothing. Default: the header is not sent. */
  readonly challenge?: string | undefined;

  /**
   * Who is calling.
   * @throws Unauthorized when the credentials are not recognised
   * @throws InsufficientScope when they are, and do not reach far enough
   * @throws AuthenticationUnavailable when nobody can tell; anything else is answered as our own fault
   */
  abstract authenticate(request: CredentialSource): Promise<Agent>;

  /**
   * Whether a request shows a credential at all: one that does not is no attempt to sign in, and is not recorded as one.
   * Default: any header besides those that clients, browsers and proxies send anyway may be one.
   */
  showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return mayPresentCredential(request);
  }

  /** Value of `WWW-Authenticate` on the 401 that answers this request. */
  challengeTo(_request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.challenge;
  }

  /** Value of `WWW-Authenticate` on a 403 for want of scopes. Default: the header is not sent. */
  scopeChallenge(_scopes: readonly string[]): string | undefined {
    return undefined;
  }

  /** What an agent could have been with more scopes, nearest first. */
  stepsAbove(_agent: Agent): readonly StepUp[] {
    return [];
  }
}

/** Stands before another authenticator and says what that one says, wherever a subclass does not say otherwise. */
export abstract class OuterAuthenticator extends Authenticator {
  constructor() {
    super();
    // A property of every authenticator: that of whoever is asked, at the time.
    Object.defineProperty(this, 'challenge', { get: () => this.inner().challenge });
  }

  /** Asked each time. */
  protected abstract inner(): Authenticator;

  authenticate(request: CredentialSource): Promise<Agent> {
    return this.inner().authenticate(request);
  }

  override showsCredential(request: Pick<CredentialSource, 'headers'>): boolean {
    return this.inner().showsCredential(request);
  }

  override challengeTo(request: Pick<CredentialSource, 'headers'>): string | undefined {
    return this.inner().challengeTo(request);
  }

  override scopeChallenge(scopes: readonly string[]): string | undefined {
    return this.inner().scopeChallenge(scopes);
  }

  override stepsAbove(agent: Agent): readonly StepUp[] {
    return this.inner().stepsAbove(agent);
  }
}

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
