// Which Markdown files are pages, where they are on the site, and the navigation: the index of docs/README.md, and of the
// indexes that it leads to.
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Files and folders whose Markdown files are pages. */
const SOURCES = ['docs', 'examples', 'libs/embedded-mongo', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'];
const COPIED = /\.(md|png|svg)$/;
const NOT_COPIED = /(^|\/)(node_modules|dist|src|logs)(\/|$)/;

/** The address of a file, without `/` before it: `README.md` is the page of its folder, and docs/ the site. */
export const pageOf = (file) =>
  file
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md')
    .replace(/^CONTRIBUTING\.md$/, 'contributing/index.md')
    .replace(/^libs\/embedded-mongo\//, 'embedded-mongo/')
    .toLowerCase();

/** Copies pages and their images. @returns the file of the repository for each page */
export function copyPages(root, target) {
  rmSync(target, { recursive: true, force: true });
  const files = new Map(
    SOURCES.flatMap((source) => filesIn(root, source)).map((file) => [pageOf(file), file]),
  );
  for (const [page, file] of files) cpSync(join(root, file), join(target, page));
  return files;
}

function filesIn(root, source) {
  if (!statSync(join(root, source)).isDirectory()) return [source];
  return readdirSync(join(root, source), { recursive: true })
    .map((name) => posix.join(source, name.replaceAll('\\', '/')))
    .filter((file) => COPIED.test(file) && !NOT_COPIED.test(file));
}

const INDEX = 'docs/README.md';
const HEADING = /^## (.+)$/;
const LINK = /\[([^\]]+)\]\(([^)\s#]+)\)/g;

/** @returns the groups of the index, each with the pages that its tables and sentences lead to */
export function navigationOf(root) {
  const groups = [];
  for (const line of linesOf(root, INDEX)) {
    const heading = HEADING.exec(line)?.[1];
    // «Guide: use it» is the group «Guide».
    if (heading) groups.push({ text: heading.replace(/:.*/, ''), collapsed: false, items: [] });
    for (const item of linksOf(line, INDEX)) groups.at(-1)?.items.push(withPagesBelow(root, item));
  }
  return groups.map(({ items, ...group }) => ({ ...group, items: items.map(shown) }));
}

const linesOf = (root, file) => readFileSync(join(root, file), 'utf8').split('\n');

/** What a line of a table says in its first cell, or a sentence. */
const linksOf = (line, from) =>
  [...(line.startsWith('|') ? line.split('|')[1] : line).matchAll(LINK)].map(([, text, target]) => ({
    text: text.replaceAll('`', ''),
    file: posix.join(posix.dirname(from), target),
  }));

/** A page that is an index itself has its pages below it. */
function withPagesBelow(root, item) {
  if (!item.file.endsWith('/README.md')) return item;
  const below = linesOf(root, item.file)
    .filter((line) => line.startsWith('|'))
    .flatMap((line) => linksOf(line, item.file));
  return { ...item, collapsed: true, items: below };
}

function shown({ text, file, items, collapsed }) {
  const page = file.endsWith('.md') ? file : `${file}/README.md`;
  const link = `/${pageOf(page)
    .replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '')}`;
  return { text, link, ...(items && { collapsed, items: items.map(shown) }) };
}
