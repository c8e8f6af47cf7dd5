import { cutText, canonicalClassName, Refused, refuse } from '#core';
import { blockFilter, isPlainObject, type PlainObject, type SecurityReason } from '../model/where.js';

/** The stages that a caller may use. */
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
/** Stages that passed `validatePipeline`. */
export type Pipeline = readonly Stage[];

const KNOWN_STAGES: ReadonlySet<string> = new Set(STAGE_NAMES);

export function isStageName(name: string): name is StageName {
  return KNOWN_STAGES.has(name);
}

/** The name and value of a validated stage. */
export function openStage(stage: Stage): { readonly name: StageName; readonly value: unknown } {
  const [name] = Object.keys(stage);
  if (name === undefined || !isStageName(name)) throw pipelineBlocked('unknown_stage');
  return { name, value: stage[name] };
}

/** A malformed pipeline. The text must not depend on data, policy or rights. */
export function invalidPipeline(at: string, what: string): Refused {
  return refuse.invalidArgument(`pipeline ${cutText(at, 200)}: ${what}`);
}

export function pipelineBlocked(reason: SecurityReason, at?: string): Refused {
  return blockFilter('pipeline', reason, at);
}

/** The pipelines inside a validated stage, each with its place. */
export function subPipelines(name: StageName, value: unknown): [string, readonly Stage[]][] {
  if (!isPlainObject(value)) return [];
  if (name === '$facet') return Object.entries(value).map(([branch, stages]) => [branch, stages as Stage[]]);
  const inner = name === '$lookup' || name === '$unionWith' ? value['pipeline'] : undefined;
  return inner === undefined ? [] : [[name, inner as Stage[]]];
}

/** The canonical class that a validated join stage reads from; null for other stages. */
export function readJoinedClass(name: StageName, value: unknown): string | null {
  if (name !== '$lookup' && name !== '$graphLookup' && name !== '$unionWith') return null;
  const target = isPlainObject(value) ? (value['coll'] ?? value['from']) : value;
  return typeof target === 'string' ? canonicalClassName(target) : null;
}
