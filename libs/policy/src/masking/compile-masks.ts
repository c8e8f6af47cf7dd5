import { TIERS } from '#agent';
import { ALWAYS_KEEP, hasInternalSegment, rootOf } from '../model/field-names.js';
import type { PolicyFault } from '../model/policy.js';
import { describeMask, isAsStrict, type MaskRule, strictestOf, type TierMasks } from './column-masks.js';

/** What is done with a field's values (docs/masking.md). */
export type MaskForm =
  | 'none'
  | 'drop'
  | 'deny'
  | 'mask'
  | 'hash'
  /** The last characters stay readable: a partial disclosure. */
  | { readonly mask: { readonly keep: number } }
  /** Pseudonyms that more than one field, or more than one tenant, shares. */
  | { readonly hash: { readonly domain?: string; readonly acrossTenants?: boolean } };

/** One form for every tier, or one per tier; a tier that is not named is masked as the one below it. */
export type MaskConfig =
  MaskForm | { readonly readonly: MaskForm; readonly write?: MaskForm; readonly admin?: MaskForm };

export type MasksConfig = Readonly<Record<string, MaskConfig>>;

/** @param path of the class in the configuration @returns masks by path, as written */
export function compileMasks(
  config: MasksConfig | undefined,
  path: string,
  faults: PolicyFault[],
): ReadonlyMap<string, TierMasks> {
  const masks = new Map<string, TierMasks>();
  for (const [written, mask] of Object.entries(config ?? {})) {
    const at = `${path}.masks.${written}`;
    const fault = maskFault(written);
    if (fault !== null) faults.push({ path: at, message: fault });
    else masks.set(written, tierMasks(mask, at, faults));
  }
  return masks;
}

/** Two declarations of one class; each tier gets what is the strictest of both. */
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

/** Why no mask can stand on the column. */
export function maskFault(wire: string): string | null {
  if (hasInternalSegment(wire)) return `'${wire}' is an internal column`;
  if ((ALWAYS_KEEP as readonly string[]).includes(rootOf(wire)))
    return `'${rootOf(wire)}' is part of every row and cannot be masked`;
  return null;
}

function tierMasks(config: MaskConfig, at: string, faults: PolicyFault[]): TierMasks {
  const rules = rulesOf(config);
  TIERS.forEach((tier, index) => {
    const below = TIERS[index - 1];
    if (below === undefined || isAsStrict(rules[below], rules[tier])) return;
    faults.push({
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
