import { mongoError, notImplemented, type MongoError } from '../errors.js';

/** What the search process of Atlas answers to a malformed search. */
export const searchFault = (message: string): MongoError => mongoError(8, message);

/** A search feature that exists, but not here. */
export const searchLack = (feature: string): MongoError => notImplemented(`${feature} of a search`);

/** What a server without search answers. */
export const searchNotEnabled = (stage: string): MongoError =>
  mongoError(
    31082,
    `Using ${stage} requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable.`,
  );
