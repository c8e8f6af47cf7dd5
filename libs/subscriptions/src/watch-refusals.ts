import { type Refusal, refusals } from '#agent';

/** No source may ever tell this agent of the class. @param cause for the log alone */
export function neverTold(cause?: string): Refusal {
  const refusal = refusals.accessDenied('subscription', 'Changes of this class cannot be told to this agent');
  return cause === undefined ? refusal : { ...refusal, cause };
}

/** It may be asked again. @param cause for the log alone */
export function notToldNow(cause?: string): Refusal {
  return refusals.parseError('changes cannot be told at the moment', cause);
}
