import {
  accepting,
  customHeader,
  declaredLength,
  health,
  host,
  lengthRequired,
  mediaType,
  origin,
  path,
  preAuthLimit,
} from './arrival-checks.js';
import { batchSession } from './batch.js';
import { acknowledge, authenticate, requestLimit, session, spokenVersion, turn } from './caller-checks.js';
import { dispatch } from './dispatch.js';
import type { RequestCheck } from './http-exchange.js';
import {
  body,
  envelope,
  era,
  json,
  legacyVersion,
  messageShape,
  methodHeader,
  modernShape,
  nameHeader,
  servedMethod,
  servedVersion,
  versionHeader,
} from './message-checks.js';
import { deleteSession, listen, postOnly } from './session-requests.js';

/**
 * Every check of a request, in the order they run: the first that answers ends it. What costs nothing stands before
 * what costs, so that nothing malformed is ever authenticated; the last check always answers.
 */
export const REQUEST_CHECKS: readonly RequestCheck[] = [
  path,
  host,
  health,
  accepting,
  preAuthLimit,
  deleteSession,
  listen,
  postOnly,
  lengthRequired,
  declaredLength,
  mediaType,
  origin,
  customHeader,
  body,
  json,
  messageShape,
  era,
  modernShape,
  envelope,
  versionHeader,
  methodHeader,
  nameHeader,
  servedVersion,
  servedMethod,
  legacyVersion,
  authenticate,
  requestLimit,
  session,
  batchSession,
  spokenVersion,
  acknowledge,
  turn,
  dispatch,
];

/** What every route that authenticates stands behind: a limit that one of them does not count is none. */
export const ROUTE_CHECKS: readonly RequestCheck[] = [host, accepting, preAuthLimit, origin];
