import { Inject, Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListedResource, ResourceCall, ResourceProvider } from '#dispatcher';
import { type EmbeddedResource, RESULTS_VIEW } from '#tools';

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

/** Media type of a view (MCP Apps 2026-01-26). */
const VIEW_TYPE = 'text/html;profile=mcp-app';

const computeDigest = (text: string): string =>
  `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

/**
 * The page as one text without further requests: its script and style are inline and named by digest in its own policy,
 * so that no row content can run or load anything under any policy of the host.
 * @param folder of the built page
 */
async function readResultsView(folder: string): Promise<string> {
  const [style, script] = await Promise.all(
    ['results.css', 'main.js'].map((name) => readFile(join(folder, name), 'utf8')),
  );
  if (style === undefined || script === undefined || /<\/(script|style)/i.test(script + style))
    throw new Error('the page would end its own script or style');
  return renderPage(style, script);
}

function renderPage(style: string, script: string): string {
  const policy = [
    `default-src 'none'`,
    `base-uri 'none'`,
    `form-action 'none'`,
    `script-src ${computeDigest(script)}`,
    `style-src ${computeDigest(style)}`,
  ].join('; ');
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Results</title>',
    `<style>${style}</style></head><body>`,
    '<main id="view" aria-busy="true"><p class="note">Waiting for the result…</p></main>',
    `<script type="module">${script}</script></body></html>`,
  ].join('\n');
}
