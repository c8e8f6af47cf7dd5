// The documentation site: the Markdown files of the repository, with the index of docs/README.md as navigation. VitePress finds
// its packages beside pages only, so they are copied into this folder first.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { copyPages, navigationOf } from './pages.mjs';
import { githubSlug, RepositoryLinks } from './repository-links.mjs';
import { search } from './search.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const pages = fileURLToPath(new URL('../dist/pages', import.meta.url));
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const links = new RepositoryLinks(root, copyPages(root, pages));

export default defineConfig({
  srcDir: pages,
  outDir: fileURLToPath(new URL('../dist/site', import.meta.url)),
  cacheDir: fileURLToPath(new URL('../dist/cache', import.meta.url)),
  // The index of the search follows the order in which pages are ready: one at a time, so that each build makes the same one.
  buildConcurrency: 1,
  title: 'Parley',
  description: 'An MCP server that lets AI agents read and change Parse and MongoDB data under rules',
  // `links` checks them with their anchors, those to files of the repository as well.
  ignoreDeadLinks: true,
  buildEnd: () => links.check(),
  markdown: {
    linkify: false,
    languageAlias: { haproxy: 'nginx' },
    // A busy machine must not leave half of a line without its colours.
    shikiSetup: (highlighter) => {
      const { codeToHtml } = highlighter;
      highlighter.codeToHtml = (code, options) => codeToHtml(code, { ...options, tokenizeTimeLimit: 0 });
    },
    anchor: { slugify: githubSlug },
    config: (markdown) => links.extend(markdown),
  },
  themeConfig: {
    search,
    nav: [
      { text: 'Guide', link: '/guide/start', activeMatch: '^/guide/' },
      { text: 'Reference', link: '/reference/configuration', activeMatch: '^/reference/' },
      { text: 'Operations', link: '/operations/deployment', activeMatch: '^/operations/' },
      { text: `Version ${version}`, link: '/changelog' },
    ],
    outline: [2, 3],
    sidebar: navigationOf(root),
  },
});
