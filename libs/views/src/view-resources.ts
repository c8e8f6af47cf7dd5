import type { ListedResource, ResourceCall, ResourceProvider } from '#dispatcher';
import { type EmbeddedResource, RESULTS_VIEW } from '#tools';
import { VIEW_TYPE } from './results-view.js';

/**
 * The views of tools: pages without data, the same for every caller. Hosts read them by the address in the tool's
 * description, so no listing contains them.
 */
export class ViewResources implements ResourceProvider {
  readonly scheme = 'ui';
  private html: Promise<string> | null = null;

  /** @param load reads the page on the first request */
  constructor(private readonly load: () => Promise<string>) {}

  list(_call: ResourceCall): readonly ListedResource[] {
    return [];
  }

  async read(uri: string): Promise<readonly EmbeddedResource[] | undefined> {
    if (uri !== RESULTS_VIEW) return undefined;
    this.html ??= this.load().catch((error: unknown) => {
      this.html = null;
      throw error;
    });
    return [
      {
        uri,
        mimeType: VIEW_TYPE,
        text: await this.html,
        // The page loads nothing and needs no permissions.
        _meta: { ui: { csp: {}, prefersBorder: true } },
      },
    ];
  }
}
