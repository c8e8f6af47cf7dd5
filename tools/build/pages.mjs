// Joins the scripts of each page that a browser shows into one file, beside its styles: dist/pages/<name>.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../..', import.meta.url));

for (const name of ['views', 'console']) {
  const source = join(root, 'libs', name, 'page');
  const target = join(root, 'dist', 'pages', name);
  const page = await rolldown({
    input: join(source, existsSync(join(source, 'main.tsx')) ? 'main.tsx' : 'main.ts'),
    platform: 'browser',
    resolve: { extensionAlias: { '.js': ['.ts', '.tsx'] } },
    logLevel: 'warn',
  });
  mkdirSync(target, { recursive: true });
  const { output } = await page.write({ file: join(target, 'main.js'), format: 'esm', minify: true });
  await page.close();
  // Licences of the packages that the script contains go with it.
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
  const packages = new Map(
    modules.flatMap((id) => {
      const [, folder, name] = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id) ?? [];
      return folder && name ? [/** @type {const} */ ([name.replace('/', '-'), folder])] : [];
    }),
  );
  for (const [name, folder] of packages)
    copyFileSync(join(folder, 'LICENSE'), join(target, `LICENSE.${name}`));
  for (const file of readdirSync(source).filter((found) => /\.(html|css|svg)$/.test(found)))
    copyFileSync(join(source, file), join(target, file));
}

// The style of the views is part of each answer that holds the page.
const style = join(root, 'dist', 'pages', 'views', 'results.css');
writeFileSync(
  style,
  readFileSync(style, 'utf8')
    .replaceAll(/\s*([{};,])\s*|:\s+|\s+/g, (found, mark) => mark ?? (found[0] === ':' ? ':' : ' '))
    .trim(),
);
