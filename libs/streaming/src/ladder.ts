import { accepting, health, host, path, preAuthLimit } from './rungs/arrival.js';
import { declaredLength, lengthRequired, mediaType } from './rungs/body-form.js';
import { customHeader, origin } from './rungs/browser-origin.js';
import { authenticate, session, spokenVersion } from './rungs/caller.js';
import { acknowledge } from './rungs/acknowledge.js';
import { batchSession } from './rungs/batch.js';
import { dispatch } from './rungs/dispatch.js';
import { body, json, messageShape } from './rungs/message.js';
import {
  envelope,
  methodHeader,
  modernShape,
  nameHeader,
  servedMethod,
  servedVersion,
  versionHeader,
} from './rungs/modern-request.js';
import { era, legacyVersion } from './rungs/protocol-era.js';
import { requestLimit } from './rungs/request-limit.js';
import type { Rung } from './rungs/rung.js';
import { turn } from './rungs/turn.js';
import { deleteSession, listen, postOnly } from './rungs/verbs.js';

/**
 * Every check of a request, in the order they run: the first that answers ends it. What costs nothing stands before
 * what costs, so that nothing malformed is ever authenticated; the last rung always answers.
 */
export const LADDER: readonly Rung[] = [
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
export const NEIGHBOUR_LADDER: readonly Rung[] = [host, accepting, preAuthLimit, origin];
