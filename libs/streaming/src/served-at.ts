/** Where this instance is served over HTTP. An application with Parley in it can say so only when its own paths are set. */
export class ServedAt {
  private places: { readonly endpoints: readonly string[]; readonly downloads: string | null };

  /** @param path of MCP, where nothing stands before it */
  constructor(path: string) {
    this.places = { endpoints: [path], downloads: '/exports' };
  }

  /** @param places paths of MCP, and of what files lie below; null: no file is served */
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
