// `npm run licences`: the licence of everything that is packed, and whether it is one that may be packed.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './packages.mjs';

/** @typedef {{ name: string, version?: string | undefined, licence?: string | undefined, text?: string, integrity?: string }} Packed */

/** @typedef {{ packages: Record<string, { version?: string, license?: string, integrity?: string, dev?: boolean, optional?: boolean, devOptional?: boolean, link?: boolean }> }} Lockfile */

/** Licences that ask for no more than their text to go along, which the archives hold. */
export const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
]);

/** Characters: the shortest licence text in use has some 600. */
const SHORTEST_TEXT = 300;
const SECTION = new RegExp(`\\n\\n-{80}\\n\\n`);

/**
 * The packages whose code is part of a bundle, of the file of licences beside it (tools/build/bundle.mjs).
 * @param {string} file
 * @returns {Packed[]}
 */
export function packagesIn(file) {
  return readFileSync(file, 'utf8')
    .split(SECTION)
    .map((section) => {
      const [, name, version, licence, text = ''] =
        /^((?:@[^/\s]+\/)?[^/\s]+) (\S+) \((.+)\)(?:\n\n([^]*))?$/.exec(section.trim()) ?? [];
      if (name === undefined) throw new Error(`${file} has a section that names no package`);
      return { name, version, licence, text };
    });
}

/** What the lockfile installs for a service without development: the image holds exactly that. */
export function installedForService(lockfile = join(root, 'package-lock.json')) {
  /** @type {Lockfile} */
  const { packages } = JSON.parse(readFileSync(lockfile, 'utf8'));
  return Object.entries(packages)
    .filter(
      ([path, { dev, optional, devOptional, link }]) =>
        path.includes('node_modules/') && !(dev || optional || devOptional || link),
    )
    .map(([path, { version, license, integrity }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      licence: license ?? licenceOf(path),
      integrity,
    }));
}

/**
 * Old packages have a list, which the lockfile does not repeat.
 * @param {string} path
 * @returns {string | undefined}
 */
function licenceOf(path) {
  const file = join(root, path, 'package.json');
  if (!existsSync(file)) return undefined;
  const { licenses: [{ type } = {}] = [] } = JSON.parse(readFileSync(file, 'utf8'));
  return type;
}

/** The packages whose code the bundles and pages of a build contain. */
export function bundled(names = ['programs.cjs', 'database.cjs', 'modules']) {
  const files = names.map((name) => join(root, 'dist/bundle', `${name}.licences.txt`));
  return unique([...files.flatMap(packagesIn), ...packagesOfPages()]);
}

/** Pages hold a licence file for each package: LICENSE.<name>. */
function packagesOfPages() {
  const pages = join(root, 'dist/pages');
  /** @type {Lockfile} */
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return readdirSync(pages, { recursive: true })
    .map(String)
    .filter((file) => basename(file).startsWith('LICENSE.'))
    .map((file) => {
      const name = basename(file).slice('LICENSE.'.length);
      const locked = packages[`node_modules/${name}`];
      if (!locked) throw new Error(`${file} is of no package of the lockfile`);
      return {
        name,
        version: locked.version,
        licence: locked.license,
        text: readFileSync(join(pages, file), 'utf8'),
      };
    });
}

/**
 * @template {Packed} One
 * @param {One[]} found
 */
export function unique(found) {
  const known = new Map(found.map((one) => [`${one.name}@${one.version}`, one]));
  return [...known.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, one]) => one);
}

/**
 * @param {Packed[]} found
 * @returns {string[]} a sentence for each package that must not be packed as it is
 */
export function licenceIssues(found, allowed = ALLOWED) {
  return found.flatMap(({ name, version, licence, text }) => {
    if (licence === undefined)
      return [
        `${name} ${version} names no licence: do not pack it, or find its licence and ask its authors to name it`,
      ];
    if (!allowed.has(licence))
      return [
        `${name} ${version} has the licence ${licence}, which nobody has allowed yet: read it, then add it to ALLOWED in tools/licences.mjs, or replace the package`,
      ];
    if (text !== undefined && text.length < SHORTEST_TEXT)
      return [
        `${name} ${version} is packed without the text of its licence (${licence}): add the text, or keep the package outside the bundle`,
      ];
    return [];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(join(root, 'dist/bundle'))) throw new Error('nothing is built: run `npm run build`');
  const found = [...unique(installedForService()), ...bundled()];
  for (const licence of [...new Set(found.map((one) => String(one.licence)))].sort((a, b) =>
    a < b ? -1 : 1,
  ))
    console.log(
      `${String(licence).padEnd(14)} ${unique(found.filter((one) => String(one.licence) === licence)).length} packages`,
    );
  const issues = licenceIssues(found);
  for (const issue of issues) console.error(`FAIL ${issue}`);
  process.exit(issues.length === 0 ? 0 : 1);
}
