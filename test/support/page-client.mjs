/// <reference lib="dom" />
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

/** What a page of another origin does with the official client; bundled for a browser. */

const kept = (name) => sessionStorage.getItem(name) ?? undefined;
const keep = (name, value) => sessionStorage.setItem(name, value);

const provider = {
  redirectUrl: `${location.origin}/`,
  clientMetadata: { redirect_uris: [`${location.origin}/`], token_endpoint_auth_method: 'none' },
  clientInformation: () => ({ client_id: 'host' }),
  tokens: () => JSON.parse(kept('tokens') ?? 'null') ?? undefined,
  saveTokens: (tokens) => keep('tokens', JSON.stringify(tokens)),
  saveCodeVerifier: (verifier) => keep('verifier', verifier),
  codeVerifier: () => kept('verifier') ?? '',
  saveDiscoveryState: (state) => keep('discovery', JSON.stringify(state)),
  discoveryState: () => JSON.parse(kept('discovery') ?? 'null') ?? undefined,
  redirectToAuthorization: (url) => location.assign(url),
};

const transportTo = (url, key) =>
  new StreamableHTTPClientTransport(
    new URL(url),
    key ? { requestInit: { headers: { 'X-MCP-API-Key': key } } } : { authProvider: provider },
  );

/** Connects and calls a tool. @returns its text, or how it failed */
globalThis.callTool = async ({ url, key, mode, name, args }) => {
  const client = new Client({ name: 'page', version: '1.0.0' }, { versionNegotiation: { mode } });
  try {
    await client.connect(transportTo(url, key));
    const { content } = await client.callTool({ name, arguments: args });
    await client.close();
    return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  } catch (error) {
    return error instanceof UnauthorizedError ? 'signing in' : `failed: ${String(error)}`;
  }
};

/** Takes what the authorization server sent the page back with. */
globalThis.finishSignIn = (url) => transportTo(url).finishAuth(new URLSearchParams(location.search));
