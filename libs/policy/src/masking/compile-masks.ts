import { TIERS } from '#agent';
import type { PolicyFault } from '../compile/compile-class.js';
import { ALWAYS_KEEP } from '../model/class-policy.js';
import { type FieldNames, rootOf } from '../model/field-names.js';
import { hasInternalSegment } from '../model/internal-fields.js';
import type { MaskConfig, MaskForm, MasksConfig } from './mask-config.js';
import { describeMask, isAsStrict, type MaskRule, strictestOf, type TierMasks } from './mask-rule.js';

interface MaskSite {
  readonly names: FieldNames;
  /** Where the class stands in the configuration. */
  readonly path: string;
}

/** @returns masks by wire path */
export function compileMasks(
  config: MasksConfig | undefined,
  { names, path }: MaskSite,
  faults: PolicyFault[],
): ReadonlyMap<string, TierMasks> {
  const masks = new Map<string, TierMasks>();
  for (const [written, mask] of Object.entries(config ?? {})) {
    const at = `${path}.masks.${written}`;
    const wire = names.wirePath(written);
    const fault = nameFault(wire) ?? (masks.has(wire) ? `declares the same field as '${wire}'` : null);
    if (fault !== null) faults.push({ path: at, message: fault });
    else masks.set(wire, tierMasks(mask, at, faults));
  }
  return masks;
}

/** Two declarations of one class; each tier gets what is the strictest of both. */
export function joinMasks(
  one: MasksConfig | undefined,
  other: MasksConfig | undefined,
  names: FieldNames,
): MasksConfig | undefined {
  if (!one || !other) return one ?? other;
  const joined: Record<string, MaskConfig> = { ...one };
  for (const [written, mask] of Object.entries(other)) {
    const known = Object.keys(one).find((name) => names.wirePath(name) === names.wirePath(written));
    joined[known ?? written] = known === undefined ? mask : strictest(one[known] as MaskConfig, mask);
  }
  return joined;
}

function strictest(one: MaskConfig, other: MaskConfig): MaskConfig {
  const [first, second] = [rulesOf(one), rulesOf(other)];
  const [readonly, write, admin] = TIERS.map((tier) => formOf(strictestOf(first[tier], second[tier])));
  return { readonly, write, admin } as MaskConfig;
}

function nameFault(wire: string): string | null {
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
