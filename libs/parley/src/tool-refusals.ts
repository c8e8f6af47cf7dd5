import { refusals as all } from '#core';

const { accessDenied, invalidArgument, invalidQuery, notImplemented, objectNotFound } = all;

/** What a tool, a prompt or an interceptor of an application may say no with: `throw new Refused(refusals.invalidArgument('…'))`. */
export const refusals = { accessDenied, invalidArgument, invalidQuery, notImplemented, objectNotFound };
