export { ApiKeyRule } from './auth-rules.js';
export { AuthModule } from './auth.module.js';
export { type AgentIdentity, AuthVersions } from './auth-versions.js';
export * from './errors.js';
export {
  Authenticator,
  followVersions,
  RecordedAuthenticator,
  RuleAuthenticator,
  type StepUp,
} from './authenticator.js';
export {
  createInnerCredentials,
  type CredentialSource,
  remoteNetwork,
  TrustedNetworks,
} from './credentials.js';
export { parseExpiry } from './named-rule.js';
export { createSlowHash, hashPlainKey, newKey, parseKeyHash } from './key-hash.js';
export { requestJson, isTrustworthyUrl } from './oauth/issuer-request.js';
export { isScopeName, toPrincipal, toSubject, type TenantClaim } from './oauth/claims.js';
export { type UserClaim } from './oauth/grants.js';
export { CurrentDocuments, isResourceUrl, resourceUrlOf, resourceUrls } from './oauth/configured-rules.js';
export { DEFAULT_ISSUER, type IssuerTrust, issuerTrust } from './oauth/oauth-rule.js';
export {
  agentOfRules,
  isSameText,
  OidcClient,
  type PendingSignIn,
  type ProvenPerson,
} from './oauth/oidc-client.js';
export { IssuerDocuments } from './oauth/issuer-metadata.js';
export { RevocationList, revocationName, type RevokedBy } from './oauth/revocations.js';
export { type Algorithm, ALGORITHMS } from './oauth/token-verifier.js';
