// `npm run release` makes what a release hands out from a clean tree, in dist/packages: every archive, SBOMs, SHA256SUMS and NOTES.md,
// which are the words of CHANGELOG.md. `npm run release -- --to 1.1.0` writes that version wherever one is named, to be read and committed
// first (docs/operations/supply-chain.md).
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { KINDS, makeArchives, out } from './archives.mjs';
import { own, root } from './packages.mjs';

/** Files that name the version, the lockfile apart: it names versions of others too. */
const VERSIONED = [
  'package.json',
  'libs/embedded-mongo/package.json',
  'Dockerfile',
  'README.md',
  'deploy/helm/parley/Chart.yaml',
  'deploy/kubernetes/deployment.yaml',
  'docs/guide/packages.md',
  'examples/behind-a-proxy/package.json',
  'examples/custom-tools/package.json',
  'examples/existing-application/package.json',
  'examples/mongoose-shop/package.json',
  'examples/multi-tenant/package.json',
  'examples/sub-agents/package.json',
  'examples/two-databases/package.json',
  'test/fixtures/http-answers/start-page.txt',
];

/** Where they name it: an archive, an image, a package, or a version by that word. */
const NAMED =
  /(parley-[a-z]+-|parley:|"@parley\/[a-z-]+": "\^?|"version": ?"|[vV]ersion: |VERSION=)(\d+\.\d+\.\d+(?:-[\w.]+)?)(?=\W)/g;

const read = (/** @type {string} */ file) => readFileSync(join(root, file), 'utf8');
const write = (/** @type {string} */ file, /** @type {string} */ text) =>
  writeFileSync(join(root, file), text);

/**
 * @param {string} changelog
 * @param {string} version
 * @returns {string | null} the entry of a version, without its heading
 */
function readNotes(changelog, version) {
  const entries = changelog.split(/^(?=## )/m);
  const entry = entries.find((one) => one.startsWith(`## ${version} `));
  return entry ? entry.replace(/^.*\n+/, '').trimEnd() : null;
}

/**
 * @param {{ version: string, changes: string, changelog: string }} state `changes`: those that git knows and no commit holds
 * @returns {string | null} why nothing can be released
 */
function findObstacle({ version, changes, changelog }) {
  if (changes !== '') return `commit or remove first what the tree holds:\n${changes}`;
  if (!readNotes(changelog, version))
    return `CHANGELOG.md has no entry "## ${version} – DATE": \`npm run release -- --to ${version}\` makes it of "## Unreleased"`;
  const others = VERSIONED.filter((file) => {
    const named = [...read(file).matchAll(NAMED)].map(([, , one]) => one);
    return !named.includes(version);
  });
  return others.length > 0 ? `${others.join(', ')} name another version than ${version}` : null;
}

/**
 * @param {string} version
 * @returns {string | null} why it cannot be set
 */
function setVersion(version) {
  const changelog = read('CHANGELOG.md');
  if (!/^## Unreleased$/m.test(changelog))
    return 'CHANGELOG.md has no entry "## Unreleased": write there what the version changes';
  for (const file of VERSIONED)
    write(
      file,
      read(file).replaceAll(NAMED, (all, place, one) => (one === own.version ? `${place}${version}` : all)),
    );
  const lock = JSON.parse(read('package-lock.json'));
  lock.version = version;
  for (const place of ['', 'libs/embedded-mongo']) lock.packages[place].version = version;
  lock.packages[''].devDependencies['@parley/embedded-mongo'] = version;
  write('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
  const today = new Date().toISOString().slice(0, 10);
  write('CHANGELOG.md', changelog.replace(/^## Unreleased$/m, `## ${version} – ${today}`));
  return null;
}

/** @param {string[]} args */
function git(...args) {
  const run = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`git ${args.join(' ')}: ${run.stderr}`);
  return run.stdout.trim();
}

/** @param {string[]} kinds */
async function release(kinds) {
  const { version } = own;
  const changelog = read('CHANGELOG.md');
  const obstacle = findObstacle({ version, changes: git('status', '--porcelain'), changelog });
  if (obstacle !== null) return obstacle;
  const archives = await makeArchives(kinds);
  const sums = archives.map(({ file, sha256 }) => `${sha256}  ${file}`).join('\n');
  const commit = git('rev-parse', 'HEAD');
  writeFileSync(
    join(out, 'NOTES.md'),
    `# Parley ${version}\n\n${readNotes(changelog, version)}\n\n## Archives\n\nOf commit ${commit}.\n\n\`\`\`text\n${sums}\n\`\`\`\n`,
  );
  console.log(
    `${sums}\ndist/packages holds ${version} with NOTES.md. Try it, then: git tag v${version} ${commit}`,
  );
  return null;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { to: { type: 'string' }, only: { type: 'string' } } });
  const kinds = values.only?.split(',') ?? Object.keys(KINDS);
  const unknown = kinds.filter((kind) => !(kind in KINDS));
  let obstacle =
    unknown.length > 0 ? `--only ${unknown.join(', ')}: there is ${Object.keys(KINDS).join(', ')}` : null;
  if (values.to !== undefined) {
    if (/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(values.to)) obstacle = setVersion(values.to);
    else obstacle = `--to ${values.to}: a version is three numbers, as 1.1.0 or 1.1.0-rc.1`;
  } else obstacle ??= await release(kinds);
  if (obstacle !== null) {
    console.error(obstacle);
    process.exitCode = 2;
  }
}
