export const RESOURCE_KINDS = ['schema', 'count', 'samples'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

export interface ResourceAddress {
  readonly className: string;
  readonly kind: ResourceKind;
}

const RESOURCE_URI = /^parse:\/\/([A-Za-z_][A-Za-z0-9_]*)(?:\/(schema|count|samples))?$/;

/** Reads `parse://<Class>[/schema|/count|/samples]`; without a kind it is the schema. `null` for anything else. */
export function parseResourceUri(uri: string): ResourceAddress | null {
  const match = RESOURCE_URI.exec(uri);
  if (!match?.[1] || match[0].length !== uri.length) return null;
  return { className: match[1], kind: (match[2] as ResourceKind | undefined) ?? 'schema' };
}

export function resourceUri(className: string, kind: ResourceKind): string {
  return `parse://${className}/${kind}`;
}
