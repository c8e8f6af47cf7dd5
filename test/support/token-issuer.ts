import { startIssuer } from '#auth/contracts';
import { endWithFile } from './started.js';

export interface TokenIssuer {
  readonly issuer: string;
  /** The headers of a caller with these claims. */
  signIn(claims: Readonly<Record<string, unknown>>, audience: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

/** Signs access tokens with any claims and no others, for an hour. It ends with the file at the latest. */
export async function startTokenIssuer(): Promise<TokenIssuer> {
  const { issuer, token, close } = await startIssuer();
  endWithFile(close);
  return {
    issuer,
    close,
    signIn: async (claims, aud) => {
      const exp = Math.floor(Date.now() / 1000) + 3_600;
      return { Authorization: `Bearer ${await token({ sub: undefined, ...claims, aud, exp })}` };
    },
  };
}
