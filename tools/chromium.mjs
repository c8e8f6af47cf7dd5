// Makes sure that Chromium can be started: from the machine, else from the system's packages where that is allowed.
import { ensurePackage, runs } from './system-package.mjs';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Where it is; `CHROMIUM` names another place. Undefined when there is none. */
export function findChromium() {
  const places = process.env.CHROMIUM ? [process.env.CHROMIUM] : PLACES;
  return places.find((path) => runs(path, ['--version']));
}

/** @returns a sentence that says what is missing, or null when nothing is */
export function ensureChromium() {
  return ensurePackage(
    'chromium',
    () => findChromium() !== undefined,
    'Chromium is missing: install the package `chromium` (Debian, Fedora, Alpine) or `chromium-browser` (Ubuntu), or name an ' +
      'executable in CHROMIUM',
  );
}
