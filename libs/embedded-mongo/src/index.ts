export { EmbeddedMongo, type EmbeddedMongoOptions } from './embedded-mongo.js';
