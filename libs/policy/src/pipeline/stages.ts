import { Refused, refusals } from '#agent';
import type { PlainObject } from '../model/plain-object.js';
import { blocked, type SecurityReason } from '../security-reason.js';

/** Every stage a caller may use. */
export const STAGE_NAMES = [
  '$match',
  '$group',
  '$sort',
  '$project',
  '$limit',
  '$skip',
  '$unwind',
  '$lookup',
  '$count',
  '$addFields',
  '$set',
  '$unset',
  '$bucket',
  '$bucketAuto',
  '$facet',
  '$sample',
  '$sortByCount',
  '$replaceRoot',
  '$replaceWith',
  '$redact',
  '$graphLookup',
  '$unionWith',
] as const;
export type StageName = (typeof STAGE_NAMES)[number];

/** An object with exactly one key, a stage name. */
export type Stage = PlainObject;
/** Stages whose shape and content the validator has passed. */
export type Pipeline = readonly Stage[];

const KNOWN: ReadonlySet<string> = new Set(STAGE_NAMES);

export function isStageName(name: string): name is StageName {
  return KNOWN.has(name);
}

/** The name and value of a validated stage. */
export function openStage(stage: Stage): { readonly name: StageName; readonly value: unknown } {
  const [name] = Object.keys(stage);
  if (name === undefined || !isStageName(name)) throw pipelineBlocked('unknown_stage');
  return { name, value: stage[name] };
}

/** What is written wrong, and no more than that: nothing of it depends on data, policy or rights. */
export function pipelineSlip(at: string, what: string): Refused {
  return new Refused(refusals.invalidArgument(`pipeline ${at.slice(0, 200)}: ${what}`));
}

export function pipelineBlocked(reason: SecurityReason, at?: string): Refused {
  return blocked('pipeline', reason, at);
}
