// Makes sure that `nginx` can be started: from the machine, else from the system's packages where that is allowed.
import { ensurePackage, runs } from './system-package.mjs';

/** @returns a sentence that says what is missing, or null when nothing is */
export function ensureNginx() {
  return ensurePackage(
    'nginx-light',
    () => runs('nginx', ['-v']),
    'nginx is missing: install the package `nginx` so that `nginx` is on the PATH',
  );
}
