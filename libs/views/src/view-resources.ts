import { Inject, Injectable } from '@nestjs/common';
import type { ListedResource, ResourceCall, ResourceProvider } from '#dispatcher';
import { type EmbeddedResource, RESULTS_VIEW } from '#tools';
import { readResultsView, VIEW_TYPE } from './results-view.js';

/** Injection token of the function that returns the folder of the built pages. */
export const VIEW_PAGES = Symbol('folder of the built pages');

/**
 * The views of tools: pages without data, the same for every caller. Hosts read them by the address in the tool's
 * description, so no listing contains them.
 */
@Injectable()
export class ViewResources implements ResourceProvider {
  readonly scheme = 'ui';
  private html: Promise<string> | null = null;

  /** @param pages is called on the first request, which reads the page */
  constructor(@Inject(VIEW_PAGES) private readonly pages: () => string) {}

  list(_call: ResourceCall): readonly ListedResource[] {
    return [];
  }

  async read(uri: string): Promise<readonly EmbeddedResource[] | undefined> {
    if (uri !== RESULTS_VIEW) return undefined;
    this.html ??= readResultsView(this.pages()).catch((error: unknown) => {
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
