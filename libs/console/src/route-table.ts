import type { Route } from './route.js';

export type Found =
  | { readonly route: Route; readonly parts: readonly string[] }
  /** The path is served, with other verbs. */
  | { readonly verbs: readonly string[] }
  | undefined;

/** Which route serves a path. */
export class RouteTable {
  constructor(private readonly routes: readonly Route[]) {}

  find(verb: string, path: string): Found {
    const serving = this.routes.flatMap((route) => {
      const parts = partsOf(route.path, path);
      return parts ? [{ route, parts }] : [];
    });
    if (serving.length === 0) return undefined;
    return (
      serving.find(({ route }) => route.verb === verb) ?? { verbs: serving.map(({ route }) => route.verb) }
    );
  }
}

/** @returns what stands where the pattern leaves it open; null when they differ elsewhere, or it cannot be decoded */
function partsOf(pattern: string, path: string): string[] | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const open: string[] = [];
  for (const [at, part] of wanted.entries()) {
    const text = given[at] as string;
    if (part !== '*') {
      if (part !== text) return null;
      continue;
    }
    const decoded = decode(text);
    if (decoded === null || decoded === '') return null;
    open.push(decoded);
  }
  return open;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
