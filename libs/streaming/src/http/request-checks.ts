import {
  accepting,
  body,
  customHeader,
  declaredLength,
  envelope,
  era,
  host,
  json,
  legacyVersion,
  lengthRequired,
  mediaType,
  messageShape,
  methodHeader,
  modernShape,
  nameHeader,
  origin,
  path,
  postOnly,
  preAuthLimit,
  servedMethod,
  servedVersion,
  versionHeader,
} from './arrival-checks.js';
import {
  acknowledge,
  authenticate,
  batchSession,
  requestLimit,
  session,
  spokenVersion,
  turn,
} from './caller-checks.js';
import { dispatch } from './dispatch.js';
import type { RequestCheck } from './http-exchange.js';
import { deleteSession, listen } from './session-requests.js';

/**
 * Every check of a request, in the order in which they run: the first that answers ends the request. Cheap checks come before
 * expensive ones, so that a malformed request is never authenticated; the last check always answers.
 */
export const REQUEST_CHECKS: readonly RequestCheck[] = [
  path,
  host,
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
