import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isAllowedEndpoint, isSafeTransport } from '#embeddings';
import { LanguageModelError, ModelSettingsError } from './model-error.js';
import { isInsideAddress } from './private-network.js';

/** The addresses of a host name. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

const resolveBySystem: ResolveHost = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

export interface EndpointOptions {
  /** Of `llm.allowedEndpoints`; null: any public one, and this machine. */
  readonly allowed: readonly string[] | null;
  readonly resolve?: ResolveHost;
}

const THIS_MACHINE = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * Where a model may be asked. An operator who lists an endpoint may mean any network with it; unlisted ones are public and
 * encrypted, or on this machine.
 */
export class ModelEndpoint {
  private readonly host: string;
  private readonly trusted: boolean;
  private readonly resolve: ResolveHost;

  /** @throws ModelSettingsError */
  constructor(
    readonly url: string,
    { allowed, resolve = resolveBySystem }: EndpointOptions,
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
    this.trusted = allowed !== null || THIS_MACHINE.has(hostname);
    if (this.trusted) return;
    if (!isSafeTransport(url))
      throw new ModelSettingsError(
        'the endpoint of the model must be https, or on this machine; name it in llm.allowedEndpoints otherwise',
      );
    if (isLiteral(hostname) && isInsideAddress(hostname)) throw new ModelSettingsError(insideText(hostname));
  }

  /** Asked before every request: where a name leads may change. @throws LanguageModelError */
  async assertReachable(): Promise<void> {
    if (this.trusted || isLiteral(this.host)) return;
    let addresses: readonly string[];
    try {
      addresses = await this.resolve(this.host);
    } catch {
      throw new LanguageModelError('unreachable', `the host ${this.host} has no address`);
    }
    if (addresses.length === 0 || addresses.some(isInsideAddress))
      throw new LanguageModelError('unreachable', insideText(this.host));
  }
}

const isLiteral = (hostname: string) => isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;

const insideText = (host: string) =>
  `${host} is inside a private network: name its endpoint in llm.allowedEndpoints to permit it`;
