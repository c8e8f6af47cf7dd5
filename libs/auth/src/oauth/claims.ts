import { readJson } from '#core';
import { InvalidToken } from '../errors.js';

export type Claims = Readonly<Record<string, unknown>>;

interface ParsedToken {
  readonly header: Claims;
  /** Not verified. Use them only to choose the verifier. */
  readonly claims: Claims;
}

const PART = /^[A-Za-z0-9_-]+$/;

/** Parsers disagree on a repeated name and on large numbers: they would read two different tokens. */
function objectIn(part: string): Claims | null {
  const reading = readJson(Buffer.from(part, 'base64url').toString('utf8'));
  if (!reading.ok) {
    if (reading.fault === 'repeated') throw new InvalidToken('a repeated member');
    if (reading.fault === 'number') throw new InvalidToken('an inexact number');
    return null;
  }
  const { value } = reading;
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Claims) : null;
}

/**
 * Parses a signed token without verifying it.
 * @returns null when the text is not a signed token
 * @throws InvalidToken when a member occurs twice, and for a number that a double does not hold
 */
export function parseToken(token: string): ParsedToken | null {
  const parts = token.split('.');
  const [first, second, signature] = parts as [string, string, string];
  if (parts.length !== 3 || !PART.test(first) || !PART.test(second) || !/^[A-Za-z0-9_-]*$/.test(signature))
    return null;
  const header = objectIn(first);
  const claims = header && objectIn(second);
  return header && claims ? { header, claims } : null;
}

/** A claim: a literal name (dots included), or the path of names to a nested claim. */
export type ClaimPath = string | readonly string[];

export function claimAt(claims: Claims, path: ClaimPath): unknown {
  let value: unknown = claims;
  for (const name of typeof path === 'string' ? [path] : path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined;
    value = (value as Claims)[name];
  }
  return value;
}

/** The claim that holds an agent's tenant. */
export interface TenantClaim {
  readonly claim: ClaimPath;
  /** Whether callers without a tenant are refused. Default true; otherwise they have no tenant. */
  readonly required?: boolean;
}

/** @throws InvalidToken when the value is not a tenant, or is missing and required */
export function readTenant(claims: Claims, { claim, required = true }: TenantClaim): string | number | null {
  const value = claimAt(claims, claim);
  if (value === undefined && !required) return null;
  if (typeof value === 'string' && value.trim() !== '') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new InvalidToken('no tenant');
}

/** RFC 6749, 3.3: syntax of a scope. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

export function isScopeName(text: string): boolean {
  return SCOPE.test(text);
}

/** Scopes are a space-separated text or a list. Some issuers name the claim `scp`. @param claim replaces both */
export function readScopes(claims: Claims, claim?: ClaimPath): ReadonlySet<string> {
  const value = claim === undefined ? (claims['scope'] ?? claims['scp']) : claimAt(claims, claim);
  const names: unknown[] = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return new Set(names.filter((name): name is string => typeof name === 'string' && isScopeName(name)));
}

/** Characters of a subject: the maximum of OpenID Connect. */
const MAX_SUBJECT = 255;

/**
 * The principal of a token. It is unique across issuers, because percent-encoding leaves no `|` and no `:`.
 * @throws InvalidToken when the token has neither a subject nor a client
 */
export function toPrincipal(issuer: string, claims: Claims): string {
  const { sub } = claims;
  const client = readClient(claims);
  if (isName(sub)) return `oauth:${issuer}|${encodeURIComponent(sub)}`;
  if (sub === undefined && isName(client)) return `oauth:${issuer}|client:${encodeURIComponent(client)}`;
  throw new InvalidToken('no subject');
}

/** The subject of a principal that `toPrincipal` made of one; null: it is of another issuer. */
export function toSubject(issuer: string, principal: string): string | null {
  const before = `oauth:${issuer}|`;
  return principal.startsWith(before) ? decodeURIComponent(principal.slice(before.length)) : null;
}

/** The client that the token was issued to, under either name that issuers use. */
export function readClient(claims: Claims): unknown {
  return claims['client_id'] ?? claims['azp'] ?? claims['cid'] ?? claims['appid'];
}

function isName(value: unknown): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= MAX_SUBJECT && !/\p{Surrogate}/u.test(value)
  );
}
