export { EmbeddedMongo, type EmbeddedMongoOptions, type StepDownOptions } from './embedded-mongo.js';
export type { EmbeddedRole, EmbeddedUser } from './server/access.js';
export type { EmbeddedTls } from './server/wire-server.js';
