export { AnonymousRule } from './anonymous-rule.js';
export { ApiKeyRule } from './api-key-rule.js';
export { AuthRule } from './auth-rule.js';
export * from './authentication-faults.js';
export { Authenticator, type CredentialSource } from './authenticator.js';
export { BearerChallenge } from './challenge.js';
export { type ClientCertificateOptions, ClientCertificateRule } from './client-certificate-rule.js';
export type { Credentials } from './credentials.js';
export { HashedKeyRule } from './hashed-key-rule.js';
export * from './impersonating-rule.js';
export { newKey, parseKeyHash, slowHashOf } from './key-hash.js';
export { askForJson, isTrustworthyUrl } from './oauth/bounded-json.js';
export { type ClaimPath, isScopeName, type TenantClaim } from './oauth/claim-values.js';
export { ClaimedUsers, USER_FIELDS, type UserClaim, type UserField } from './oauth/claimed-users.js';
export { type Admission, Grant } from './oauth/grant.js';
export {
  DEFAULT_ISSUER,
  type IssuerTrust,
  issuerTrust,
  type OAuthGrants,
  type OAuthIssuer,
  oauthRule,
} from './oauth/issuer-options.js';
export { IssuerDocuments } from './oauth/issuer-documents.js';
export { OAuthRule } from './oauth/oauth-rule.js';
export { metadataUrlOf, ResourceDocuments } from './oauth/resource-documents.js';
export { RevocationList, type RevokedBy, RevokedBook, revocationName } from './oauth/revocation-list.js';
export type { Revocations } from './oauth/revocations.js';
export type { StepUp } from './oauth/scope-ladder.js';
export { type Algorithm, ALGORITHMS } from './oauth/token-verifier.js';
export { CallerSessionRule, ParseSessionRule, withOwnSession } from './parse-session-rule.js';
export { OuterAuthenticator } from './outer-authenticator.js';
export { RecordedAuthenticator } from './recorded-authenticator.js';
export { RuleAuthenticator } from './rule-authenticator.js';
export { remoteNetwork } from './remote-network.js';
export { SessionOwners } from './session-owners.js';
export { TrustedNetworks } from './trusted-networks.js';
