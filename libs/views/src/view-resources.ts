import type { ListedResource, ResourceCall, ResourceProvider } from '#dispatcher';
import { type EmbeddedResource, RESULTS_VIEW } from '#tools';
import { VIEW_TYPE } from './results-view.js';

/**
 * The views that tools name: pages without data in them, the same for everybody. Hosts read them by the address in the tool's
 * description, so they are in no listing.
 */
export class ViewResources implements ResourceProvider {
  readonly scheme = 'ui';
  private html: Promise<string> | null = null;

  /** @param load the page, once it is asked for */
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
        // It loads nothing and asks for nothing.
        _meta: { ui: { csp: {}, prefersBorder: true } },
      },
    ];
  }
}
