import { runs } from './system-package.mjs';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Where it is; `CHROMIUM` names another place. Undefined when there is none. */
export function findChromium() {
  const places = process.env.CHROMIUM ? [process.env.CHROMIUM] : PLACES;
  return places.find((path) => runs(path, ['--version']));
}
