export { EmbeddedMongo } from './embedded-mongo.js';
