import { TIERS } from '#core';
import { ALWAYS_KEEP, hasInternalSegment, rootOf } from '../model/field-names.js';
import type { PolicyIssue } from '../model/policy.js';
import { describeMask, isAsStrict, type MaskRule, strictestOf, type TierMasks } from './column-masks.js';

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
    const known = one[written];
    joined[written] = known === undefined ? mask : strictest(known, mask);
  }
  return joined;
}

function strictest(one: MaskConfig, other: MaskConfig): MaskConfig {
  const [first, second] = [rulesOf(one), rulesOf(other)];
  const [readonly, write, admin] = TIERS.map((tier) => formOf(strictestOf(first[tier], second[tier])));
  return { readonly, write, admin } as MaskConfig;
}

/** Why the column cannot be masked; null when it can. */
export function maskIssue(wire: string): string | null {
  if (hasInternalSegment(wire)) return `'${wire}' is an internal column`;
  if ((ALWAYS_KEEP as readonly string[]).includes(rootOf(wire)))
    return `'${rootOf(wire)}' is part of every row and cannot be masked`;
  return null;
}

function tierMasks(config: MaskConfig, at: string, issues: PolicyIssue[]): TierMasks {
  const rules = rulesOf(config);
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

function rulesOf(config: MaskConfig): TierMasks {
  const tiers = typeof config === 'object' && 'readonly' in config ? config : { readonly: config };
  const readonly = ruleOf(tiers.readonly);
  const write = 'write' in tiers && tiers.write !== undefined ? ruleOf(tiers.write) : readonly;
  const admin = 'admin' in tiers && tiers.admin !== undefined ? ruleOf(tiers.admin) : write;
  return { readonly, write, admin };
}

function ruleOf(form: MaskForm): MaskRule {
  if (form === 'mask') return { kind: 'mask', keep: 0 };
  if (form === 'hash') return { kind: 'hash', domain: null, acrossTenants: false };
  if (typeof form === 'string') return { kind: form };
  if ('mask' in form) return { kind: 'mask', keep: form.mask.keep };
  const { domain = null, acrossTenants = false } = form.hash;
  return { kind: 'hash', domain, acrossTenants };
}

function formOf(rule: MaskRule): MaskForm {
  if (rule.kind === 'mask') return rule.keep === 0 ? 'mask' : { mask: { keep: rule.keep } };
  if (rule.kind !== 'hash') return rule.kind;
  const { domain, acrossTenants } = rule;
  return { hash: { ...(domain !== null && { domain }), acrossTenants } };
}
