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
 * Every check of a request, in the order in which they run: the first that answers ends the request. Cheap checks come before
 * expensive ones, so that a malformed request is never authenticated; the last check always answers.
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

/** The checks of every route that authenticates: a limit that one route did not count would not be a limit. */
export const ROUTE_CHECKS: readonly RequestCheck[] = [host, accepting, preAuthLimit, origin];
