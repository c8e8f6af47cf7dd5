/** Permission tiers, each including the tools of the lower ones. */
export const TIERS = ['readonly', 'write', 'admin'] as const;
/** What an agent may do at all; each tier includes those before it. */
export type Tier = (typeof TIERS)[number];

export function isTier(value: unknown): value is Tier {
  return TIERS.includes(value as Tier);
}

/** True when a caller of tier `held` may use what needs `needed`. A tier nobody declared ranks as readonly. */
export function tierCovers(held: Tier, needed: Tier): boolean {
  return Math.max(TIERS.indexOf(held), 0) >= TIERS.indexOf(needed);
}
