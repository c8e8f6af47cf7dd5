// `npm run sbom`: what is inside each archive, as CycloneDX documents beside them in dist/packages. `npm sbom` describes a tree of
// installed packages: it names none whose code is inside a bundle, and of this lockfile it leaves out half of what is installed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundled, installedForService, packagesIn, unique } from './licences.mjs';
import { own, packages, root } from './packages.mjs';

const out = join(root, 'dist/packages');

/** The archives, and the packages whose code each of them holds. */
export function contents() {
  const testing = join(out, 'node_modules/@parley/testing/dist/index.licences.txt');
  const wholePrograms = () => bundled(['programs.cjs', 'database.cjs']);
  return {
    'parley-server': { ...packages[0].manifest(), holds: bundled() },
    'parley-testing': {
      ...packages[1].manifest(),
      holds: existsSync(testing) ? unique(packagesIn(testing)) : [],
    },
    'parley.mcpb': {
      name: 'parley.mcpb',
      version: own.version,
      license: own.license,
      holds: wholePrograms(),
    },
    'parley-image': {
      name: 'parley-image',
      version: own.version,
      license: own.license,
      holds: unique(
        [...installedForService(), ...bundled()].map(({ name, version, licence }) => ({
          name,
          version,
          licence,
        })),
      ),
    },
  };
}

/** Of the same contents the same document: no time, and a serial number made of the contents. */
export function sbomOf({ name, version, license, holds }) {
  const integrity = integrities();
  const components = holds.map((one) => {
    const purl = `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`;
    const sha512 = integrity.get(`${one.name}@${one.version}`);
    return {
      type: 'library',
      'bom-ref': purl,
      name: one.name,
      version: one.version,
      ...(sha512 && { hashes: [{ alg: 'SHA-512', content: sha512 }] }),
      licenses: [{ license: { id: one.licence } }],
      purl,
    };
  });
  const described = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  const metadata = {
    component: {
      type: 'application',
      'bom-ref': described,
      name,
      version,
      licenses: [{ license: { id: license } }],
      purl: described,
    },
  };
  const digest = createHash('sha256')
    .update(JSON.stringify([metadata, components]))
    .digest('hex');
  const serial = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: `urn:uuid:${serial}`,
    version: 1,
    metadata,
    components,
    dependencies: [{ ref: described, dependsOn: components.map(({ purl }) => purl) }],
  };
}

/** The digests of the lockfile, in hexadecimal. */
function integrities() {
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return new Map(
    Object.entries(locked).flatMap(([path, { version, integrity }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      const [algorithm, digest] = (integrity ?? '').split('-');
      return algorithm === 'sha512'
        ? [[`${name}@${version}`, Buffer.from(digest, 'base64').toString('hex')]]
        : [];
    }),
  );
}

/** @returns {string[]} the paths of the documents */
export function writeSboms() {
  mkdirSync(out, { recursive: true });
  return Object.entries(contents()).map(([archive, content]) => {
    const file = join(out, `${archive}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(sbomOf(content), null, 2)}\n`);
    return file;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(join(root, 'dist/bundle'))) throw new Error('nothing is built: run `npm run build`');
  for (const file of writeSboms()) console.log(file);
}
