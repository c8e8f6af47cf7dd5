// Links between Markdown files, as they work in the repository: checked with their anchors, and led to the pages of the site.
import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';

const EXTERNAL = /^[a-z][a-z0-9+.-]*:/i;

/** The anchor that GitHub gives a heading. */
export const githubSlug = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');

export class RepositoryLinks {
  /** Anchors by file. @type {Map<string, Set<string>>} */
  #anchors = new Map();
  /** @type {{ from: string, to: string, anchor: string }[]} */
  #links = [];
  /** Sentences about what leads nowhere. @type {Set<string>} */
  #dead = new Set();

  #root;
  /** The file of each page, and the page of each file. */
  #fileOf;
  #pageOf;

  /** @param {Map<string, string>} files the file of the repository for each page */
  constructor(root, files) {
    this.#root = root;
    this.#fileOf = files;
    this.#pageOf = new Map([...files].map(([page, file]) => [file, page]));
  }

  extend(markdown) {
    markdown.core.ruler.push('repository_links', ({ tokens, env }) => {
      const file = this.#fileOf.get(env.relativePath) ?? env.relativePath;
      const anchors = new Set();
      this.#anchors.set(file, anchors);
      for (const token of tokens) {
        if (token.type === 'heading_open') anchors.add(token.attrGet('id'));
        for (const child of [token, ...(token.children ?? [])]) {
          const id = child.type.startsWith('html') && /<a id="([^"]+)"/.exec(child.content)?.[1];
          if (id) anchors.add(id);
          if (child.type === 'link_open' && child.attrGet('href')) this.#lead(child, file);
        }
        this.#withoutDeadEnds(token);
      }
    });
  }

  /** Gives a link the address of its page. A file that is no page has none: its text stays. */
  #lead(token, file) {
    const href = token.attrGet('href');
    if (EXTERNAL.test(href) || token.attrGet('class') === 'header-anchor') return;
    const [path, anchor = ''] = decodeURI(href).split('#');
    const target = path === '' ? file : posix.join(posix.dirname(file), path).replace(/\/$/, '');
    const page = [target, `${target}/README.md`].find(
      (name) => name.endsWith('.md') && this.#pageOf.has(name),
    );
    if (page) {
      this.#links.push({ from: file, to: page, anchor });
      const address = (this.#pageOf.get(page) ?? '')
        .replace(/(^|\/)index\.md$/, '$1')
        .replace(/\.md$/, '.html');
      token.attrSet('href', `/${address}${anchor && `#${anchor}`}`);
    } else {
      if (!existsSync(join(this.#root, target))) this.#dead.add(`${file}: ${href} does not exist`);
      token.attrSet('href', '');
      token.meta = { file: target };
    }
  }

  /** A link to a file of the repository is its text, with the path of the file as its title. */
  #withoutDeadEnds(token) {
    let open = 0;
    for (const child of token.children ?? []) {
      if (child.meta?.file) {
        open += 1;
        Object.assign(child, {
          type: 'file_open',
          tag: 'span',
          attrs: [['title', `In the repository: ${child.meta.file}`]],
        });
      } else if (child.type === 'link_close' && open > 0) {
        open -= 1;
        Object.assign(child, { type: 'file_close', tag: 'span' });
      }
    }
  }

  /** @throws naming each link that leads nowhere */
  check() {
    for (const { from, to, anchor } of this.#links)
      if (anchor && !this.#anchors.get(to)?.has(anchor)) this.#dead.add(`${from}: ${to} has no #${anchor}`);
    if (this.#dead.size > 0) throw new Error(`Links that lead nowhere:\n${[...this.#dead].join('\n')}`);
  }
}
