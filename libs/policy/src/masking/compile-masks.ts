import { type Tier, TIERS } from '#core';
import { ALWAYS_KEEP, hasInternalSegment, takeRoot } from '../model/field-names.js';
import type { PolicyIssue } from '../model/policy-issue.js';

/**
 * How a field is masked for one permission level. `drop`: as if the field did not exist. `deny`: left out, and naming it is
 * refused. `mask`: a fixed text replaces every value. `hash`: a pseudonym replaces it. `none`: the value itself.
 */
export type MaskRule =
  | { readonly kind: 'none' | 'drop' | 'deny' }
  /** The number of characters that stay at the end. */
  | { readonly kind: 'mask'; readonly keep: number }
  | {
      readonly kind: 'hash';
      /** Fields of one domain share pseudonyms; null: the field has its own. */
      readonly domain: string | null;
      readonly acrossTenants: boolean;
    };

export type TierMasks = Readonly<Record<Tier, MaskRule>>;

export const FULL_MASK: MaskRule = { kind: 'mask', keep: 0 };

function rank(rule: MaskRule): number {
  if (rule.kind === 'mask') return rule.keep === 0 ? 2 : 1;
  return { none: 0, hash: 1, deny: 3, drop: 4 }[rule.kind];
}

/** Whether `one` shows nothing that `other` does not. Neither of an ending and a pseudonym is stricter. */
export function isAsStrict(one: MaskRule, other: MaskRule): boolean {
  if (rank(one) !== rank(other)) return rank(one) > rank(other);
  if (one.kind === 'mask') return other.kind === 'mask' && one.keep <= other.keep;
  if (one.kind !== 'hash') return one.kind === other.kind;
  if (other.kind !== 'hash' || (one.acrossTenants && !other.acrossTenants)) return false;
  return one.domain === null || one.domain === other.domain;
}

/** The weakest rule that is as strict as both. */
export function chooseStrictest(one: MaskRule, other: MaskRule): MaskRule {
  if (isAsStrict(one, other)) return one;
  return isAsStrict(other, one) ? other : FULL_MASK;
}

/** In the form of the configuration. */
export function describeMask(rule: MaskRule): string {
  if (rule.kind === 'mask' && rule.keep > 0) return `mask, last ${rule.keep} kept`;
  if (rule.kind !== 'hash') return rule.kind;
  const shared = rule.domain === null ? '' : `, shared as ${rule.domain}`;
  return `hash${shared}${rule.acrossTenants ? ', across tenants' : ''}`;
}

/** How the values of a field are masked (docs/guide/masking.md). */
type MaskForm =
  | 'none'
  | 'drop'
  | 'deny'
  | 'mask'
  | 'hash'
  /** Discloses the last characters. */
  | { readonly mask: { readonly keep: number } }
  /** Pseudonyms shared by several fields or several tenants. */
  | { readonly hash: { readonly domain?: string; readonly acrossTenants?: boolean } };

/** One form for all permission levels, or one for each; a level that is left out uses that of the level below. */
export type MaskConfig =
  MaskForm | { readonly readonly: MaskForm; readonly write?: MaskForm; readonly admin?: MaskForm };

export type MasksConfig = Readonly<Record<string, MaskConfig>>;

/** @param path of the class in the configuration @returns masks by path, as written */
export function compileMasks(
  config: MasksConfig | undefined,
  path: string,
  issues: PolicyIssue[],
): ReadonlyMap<string, TierMasks> {
  const masks = new Map<string, TierMasks>();
  for (const [written, mask] of Object.entries(config ?? {})) {
    const at = `${path}.masks.${written}`;
    const issue = maskIssue(written);
    if (issue !== null) issues.push({ path: at, message: issue });
    else masks.set(written, tierMasks(mask, at, issues));
  }
  return masks;
}

/** Merges two declarations of one class: for each permission level the stricter mask. */
export function joinMasks(
  one: MasksConfig | undefined,
  other: MasksConfig | undefined,
): MasksConfig | undefined {
  if (!one || !other) return one ?? other;
  const joined: Record<string, MaskConfig> = { ...one };
  for (const [written, mask] of Object.entries(other)) {
    const known = Object.hasOwn(one, written) ? one[written] : undefined;
    joined[written] = known === undefined ? mask : strictest(known, mask);
  }
  return joined;
}

function strictest(one: MaskConfig, other: MaskConfig): MaskConfig {
  const [first, second] = [readRules(one), readRules(other)];
  const [readonly, write, admin] = TIERS.map((tier) => toForm(chooseStrictest(first[tier], second[tier])));
  return { readonly, write, admin } as MaskConfig;
}

/** Why the column cannot be masked; null when it can. */
export function maskIssue(wire: string): string | null {
  if (hasInternalSegment(wire)) return `'${wire}' is an internal column`;
  if ((ALWAYS_KEEP as readonly string[]).includes(takeRoot(wire)))
    return `'${takeRoot(wire)}' is part of every row and cannot be masked`;
  return null;
}

function tierMasks(config: MaskConfig, at: string, issues: PolicyIssue[]): TierMasks {
  const rules = readRules(config);
  TIERS.forEach((tier, index) => {
    const below = TIERS[index - 1];
    if (below === undefined || isAsStrict(rules[below], rules[tier])) return;
    issues.push({
      path: `${at}.${tier}`,
      message:
        `a higher tier is masked by less, not by '${describeMask(rules[tier])}' where ${below} has ` +
        `'${describeMask(rules[below])}'`,
    });
  });
  return rules;
}

function readRules(config: MaskConfig): TierMasks {
  const tiers = typeof config === 'object' && 'readonly' in config ? config : { readonly: config };
  const readonly = toRule(tiers.readonly);
  const write = 'write' in tiers && tiers.write !== undefined ? toRule(tiers.write) : readonly;
  const admin = 'admin' in tiers && tiers.admin !== undefined ? toRule(tiers.admin) : write;
  return { readonly, write, admin };
}

function toRule(form: MaskForm): MaskRule {
  if (form === 'mask') return { kind: 'mask', keep: 0 };
  if (form === 'hash') return { kind: 'hash', domain: null, acrossTenants: false };
  if (typeof form === 'string') return { kind: form };
  if ('mask' in form) return { kind: 'mask', keep: form.mask.keep };
  const { domain = null, acrossTenants = false } = form.hash;
  return { kind: 'hash', domain, acrossTenants };
}

function toForm(rule: MaskRule): MaskForm {
  if (rule.kind === 'mask') return rule.keep === 0 ? 'mask' : { mask: { keep: rule.keep } };
  if (rule.kind !== 'hash') return rule.kind;
  const { domain, acrossTenants } = rule;
  return { hash: { ...(domain !== null && { domain }), acrossTenants } };
}
