// The thread of the embedded database, which the build starts with a code cache. Without the build its package starts its own file.
import { fileURLToPath } from 'node:url';
import { runCached } from './code-cache.js';

runCached(fileURLToPath(new URL('./database.cjs', import.meta.url)));
