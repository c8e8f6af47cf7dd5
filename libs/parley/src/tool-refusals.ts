import { refusals as all } from '#core';

const { accessDenied, invalidArgument, invalidQuery, notImplemented, objectNotFound } = all;

/**
 * Refusals that a tool, a prompt or an interceptor of an application may throw: `throw new
 * Refused(refusals.invalidArgument('…'))`.
 */
export const refusals = { accessDenied, invalidArgument, invalidQuery, notImplemented, objectNotFound };
