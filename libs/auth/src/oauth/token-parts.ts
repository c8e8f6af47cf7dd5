import { InvalidToken } from '../authentication-faults.js';
import { hasRepeatedMember } from './repeated-member.js';

export type Claims = Readonly<Record<string, unknown>>;

export interface TokenParts {
  readonly header: Claims;
  /** Not verified: good for nothing but finding out who should verify it. */
  readonly claims: Claims;
}

const PART = /^[A-Za-z0-9_-]+$/;

function objectIn(part: string): Claims | null {
  const text = Buffer.from(part, 'base64url').toString('utf8');
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
    // Two readers of a repeated name see two different tokens.
    if (hasRepeatedMember(text)) throw new InvalidToken('a repeated member');
    return value as Claims;
  } catch (error) {
    if (error instanceof InvalidToken) throw error;
    return null;
  }
}

/**
 * Takes a signed token apart without believing it.
 * @returns null when it is none
 * @throws InvalidToken when it is one that names a member twice
 */
export function tokenParts(token: string): TokenParts | null {
  const parts = token.split('.');
  const [first, second, signature] = parts as [string, string, string];
  if (parts.length !== 3 || !PART.test(first) || !PART.test(second) || !/^[A-Za-z0-9_-]*$/.test(signature))
    return null;
  const header = objectIn(first);
  const claims = header && objectIn(second);
  return header && claims ? { header, claims } : null;
}
