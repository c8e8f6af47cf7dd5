export const TIERS = ['readonly', 'write', 'admin'] as const;
/** The permission level of an agent; each includes those before it. */
export type Tier = (typeof TIERS)[number];

export function isTier(value: unknown): value is Tier {
  return TIERS.includes(value as Tier);
}

/** Whether level `held` includes level `needed`. An unknown level counts as `readonly`. */
export function tierCovers(held: Tier, needed: Tier): boolean {
  return Math.max(TIERS.indexOf(held), 0) >= TIERS.indexOf(needed);
}
