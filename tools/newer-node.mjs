// The Node for test partners that need a newer one than Parley does: of test/nodes, or the one that runs this.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const installed = fileURLToPath(new URL('../test/nodes/node_modules/node-24/bin/node', import.meta.url));

export const NEWER_NODE = existsSync(installed) ? installed : process.execPath;
