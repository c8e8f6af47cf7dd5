import type { ResolveHost } from '#core';
import { requestJson, AuthenticationUnavailable, IssuerDocuments } from '#auth';
import { consoleIssuer, fourEyesDoubt, type ParleyConfig } from '#config';
import { type Finding, fail, ok, warn } from './finding.js';
import { countOf } from '../cli/text-output.js';

interface Issuer {
  readonly issuer: string;
  readonly jwksUri?: string;
}

/**
 * Checks that every issuer of access tokens serves its metadata and keys. It uses the same checked connection and
 * limits as the service.
 * @param resolve default: the system's name resolution
 */
export async function checkOAuth(rules: readonly object[], resolve?: ResolveHost): Promise<Finding[]> {
  const issuers = rules.flatMap((rule) => ('oauth' in rule ? [rule.oauth as Issuer] : []));
  return (await Promise.all(issuers.map((issuer) => checkIssuer(issuer, resolve)))).flat();
}

async function checkIssuer({ issuer, jwksUri }: Issuer, resolve?: ResolveHost): Promise<Finding[]> {
  const documents = new IssuerDocuments(issuer, resolve);
  if (jwksUri === undefined && !(await describesItself(documents)))
    return [
      fail(
        'oauth.issuer',
        `${issuer} does not describe itself`,
        'check that issuer is exactly the iss of its tokens, and that its metadata can be reached from here',
      ),
    ];
  const address = jwksUri === undefined ? documents.endpoint('jwks_uri') : Promise.resolve(jwksUri);
  const count = await keysAt(address, resolve);
  return [
    ok(
      'oauth.issuer',
      `${issuer} ${jwksUri === undefined ? 'describes itself' : 'has its keys at a fixed address'}`,
    ),
    count > 0
      ? ok('oauth.keys', `${issuer} has ${countOf(count, 'key')}`)
      : fail(
          'oauth.keys',
          `the keys of ${issuer} cannot be read`,
          'every token is refused until they can: check jwks_uri',
        ),
  ];
}

/**
 * Checks that the issuer of the console's sign-in names the endpoints that a sign-in needs, that somebody is an operator
 * by it, and that nobody could approve a call of their own.
 */
export async function checkSignIn(
  config: Pick<ParleyConfig, 'console' | 'auth' | 'approvals'>,
): Promise<Finding[]> {
  const { oidc } = config.console;
  const issuer = consoleIssuer(config);
  if (!oidc || issuer === null) return [];
  const documents = new IssuerDocuments(issuer);
  try {
    await documents.endpoint('authorization_endpoint');
    await documents.endpoint('token_endpoint');
    await documents.endpoint('jwks_uri');
  } catch (error) {
    if (!(error instanceof AuthenticationUnavailable)) throw error;
    return [
      fail(
        'console.oidc',
        `operators cannot sign in with ${issuer}`,
        'its metadata must be reachable from here and name authorization_endpoint, token_endpoint and jwks_uri',
      ),
    ];
  }
  const doubt = fourEyesDoubt(config, (await documents.current())['subject_types_supported']);
  return [
    ...(doubt === null ? [] : [warn('console.oidc', doubt, DISTINCT_PEOPLE)]),
    oidc.operators.length > 0
      ? ok('console.oidc', `operators can be led to ${issuer}`)
      : warn('console.oidc', 'no rule makes anybody an operator', 'add one to console.oidc.operators'),
  ];
}

const DISTINCT_PEOPLE =
  'use one issuer, with public subjects for the console and the clients of agents; else name agents of other people in approvals.approvers';

async function describesItself(documents: IssuerDocuments): Promise<boolean> {
  try {
    await documents.current();
    return true;
  } catch (error) {
    if (error instanceof AuthenticationUnavailable) return false;
    throw error;
  }
}

/** The number of keys; 0 where the service would read none. */
async function keysAt(address: Promise<string>, resolve: ResolveHost | undefined): Promise<number> {
  try {
    const { status, value } = await requestJson(await address, { resolve });
    const keys = value?.['keys'];
    return status === 200 && Array.isArray(keys) ? keys.length : 0;
  } catch (error) {
    if (error instanceof AuthenticationUnavailable) return 0;
    throw error;
  }
}
