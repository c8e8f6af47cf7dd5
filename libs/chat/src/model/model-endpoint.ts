import { isIP } from 'node:net';
import { ForbiddenAddress, isInsideAddress, type PinnedRequest, sendPinned, type ResolveHost } from '#core';
import { isAllowedEndpoint, isSafeTransport } from '#data';
import { LanguageModelError, ModelSettingsError } from './language-model.js';

export interface EndpointOptions {
  /** `llm.allowedEndpoints`; null permits public endpoints and this machine. */
  readonly allowed: readonly string[] | null;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost;
}

const THIS_MACHINE = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * The endpoint of a model. A listed endpoint may be in any network; other endpoints must be public and use TLS, or be
 * on this machine.
 */
export class ModelEndpoint {
  private readonly host: string;
  private readonly listed: boolean;
  private readonly resolve: ResolveHost | undefined;

  /** @throws ModelSettingsError */
  constructor(
    readonly url: string,
    { allowed, resolve }: EndpointOptions,
  ) {
    this.resolve = resolve;
    if (!URL.canParse(url)) throw new ModelSettingsError('the endpoint of the model is no URL');
    const parsed = new URL(url);
    const { protocol, hostname, username, password, search, hash } = parsed;
    if (username !== '' || password !== '')
      throw new ModelSettingsError('the endpoint of the model must not carry credentials');
    if (search !== '' || hash !== '')
      throw new ModelSettingsError('the endpoint of the model must not have a query or a fragment');
    if (protocol !== 'https:' && protocol !== 'http:')
      throw new ModelSettingsError('the endpoint of the model must be an https or http URL');
    if (!isAllowedEndpoint(url, allowed))
      throw new ModelSettingsError(`the endpoint ${parsed.origin} is not among llm.allowedEndpoints`);
    this.host = hostname;
    this.listed = allowed !== null;
    if (this.listed || THIS_MACHINE.has(hostname)) return;
    if (!isSafeTransport(url))
      throw new ModelSettingsError(
        'the endpoint of the model must be https, or on this machine; name it in llm.allowedEndpoints otherwise',
      );
    if (isLiteral(hostname) && isInsideAddress(hostname)) throw new ModelSettingsError(insideText(hostname));
  }

  /**
   * Sends a request below the endpoint over a connection to a checked address.
   * @throws LanguageModelError for an address inside a network; otherwise as `sendPinned`
   */
  async request(path: string, request: Omit<PinnedRequest, 'rule' | 'resolve'>): Promise<Response> {
    const url = this.url.replace(/\/+$/, '') + path;
    try {
      return await sendPinned(url, {
        ...request,
        rule: this.listed ? 'any' : 'public',
        resolve: this.resolve,
      });
    } catch (error) {
      if (error instanceof TypeError && error.cause instanceof ForbiddenAddress)
        throw new LanguageModelError('unreachable', insideText(this.host));
      throw error;
    }
  }
}

const isLiteral = (hostname: string) => isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;

const insideText = (host: string) =>
  `${host} is inside a private network: name its endpoint in llm.allowedEndpoints to permit it`;
