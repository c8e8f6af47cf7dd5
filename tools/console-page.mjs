// Joins the scripts of the console's page into one file, dist/page, beside its markup and styles.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'libs/console/page');
const target = join(root, 'dist/page');

const page = await rolldown({
  input: join(source, 'main.ts'),
  platform: 'browser',
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  logLevel: 'warn',
});
mkdirSync(target, { recursive: true });
await page.write({ file: join(target, 'main.js'), format: 'esm', minify: true });
await page.close();
for (const name of readdirSync(source).filter((file) => /\.(html|css|svg)$/.test(file)))
  copyFileSync(join(source, name), join(target, name));
