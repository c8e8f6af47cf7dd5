/** An object of a configuration that was not validated yet. */
export type Section = Record<string, unknown>;

export function isSection(value: unknown): value is Section {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
