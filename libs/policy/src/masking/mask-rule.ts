import type { Tier } from '#agent';

/**
 * What becomes of a field for agents of one tier. `drop`: as if there were no such field. `deny`: left out, and naming it is
 * a refusal. `mask`: a fixed text stands for every value. `hash`: a pseudonym stands for it. `none`: the value itself.
 */
export type MaskRule =
  | { readonly kind: 'none' | 'drop' | 'deny' }
  /** Characters at the end that stay; 0: none. */
  | { readonly kind: 'mask'; readonly keep: number }
  | {
      readonly kind: 'hash';
      /** Fields of one domain share their pseudonyms; null: the field has its own. */
      readonly domain: string | null;
      readonly acrossTenants: boolean;
    };

export type TierMasks = Readonly<Record<Tier, MaskRule>>;

export const FULL_MASK: MaskRule = { kind: 'mask', keep: 0 };

function rank(rule: MaskRule): number {
  if (rule.kind === 'mask') return rule.keep === 0 ? 2 : 1;
  return { none: 0, hash: 1, deny: 3, drop: 4 }[rule.kind];
}

/** Whether `one` shows nothing that `other` does not. Of an ending and a pseudonym neither is the stricter. */
export function isAsStrict(one: MaskRule, other: MaskRule): boolean {
  if (rank(one) !== rank(other)) return rank(one) > rank(other);
  if (one.kind === 'mask') return other.kind === 'mask' && one.keep <= other.keep;
  if (one.kind !== 'hash') return one.kind === other.kind;
  if (other.kind !== 'hash' || (one.acrossTenants && !other.acrossTenants)) return false;
  return one.domain === null || one.domain === other.domain;
}

/** The weakest rule that shows nothing that either would not. */
export function strictestOf(one: MaskRule, other: MaskRule): MaskRule {
  if (isAsStrict(one, other)) return one;
  return isAsStrict(other, one) ? other : FULL_MASK;
}

/** In the words of the configuration. */
export function describeMask(rule: MaskRule): string {
  if (rule.kind === 'mask' && rule.keep > 0) return `mask, last ${rule.keep} kept`;
  if (rule.kind !== 'hash') return rule.kind;
  const shared = rule.domain === null ? '' : `, shared as ${rule.domain}`;
  return `hash${shared}${rule.acrossTenants ? ', across tenants' : ''}`;
}
