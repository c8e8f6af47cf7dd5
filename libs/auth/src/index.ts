export { AnonymousRule } from './anonymous-rule.js';
export { ApiKeyRule } from './api-key-rule.js';
export { AuthRule } from './auth-rule.js';
export { Authenticator, type CredentialSource } from './authenticator.js';
export type { Credentials } from './credentials.js';
export { CallerSessionRule, ParseSessionRule } from './parse-session-rule.js';
export { RuleAuthenticator } from './rule-authenticator.js';
export { SessionOwners } from './session-owners.js';
export * from './impersonating-rule.js';
