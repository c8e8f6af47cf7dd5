/** The path of MCP, where no prefix precedes it. */
export const MCP_PATH = Symbol('path of MCP');

/** Where this instance is served over HTTP. An application that embeds Parley sets it when its own paths are known. */
export class ServedAt {
  private places: { readonly endpoints: readonly string[]; readonly downloads: string | null };

  /** @param path of MCP, where no prefix precedes it */
  constructor(path: string) {
    this.places = { endpoints: [path], downloads: '/exports' };
  }

  /** @param places the path of MCP and the path of files; null: no file is served */
  settle(places: { readonly endpoints: readonly string[]; readonly downloads: string | null }): void {
    this.places = places;
  }

  get endpoints(): readonly string[] {
    return this.places.endpoints;
  }

  get downloads(): string | null {
    return this.places.downloads;
  }
}
