import { readFileSync } from 'node:fs';
import { type Finding, fail, ok, warn } from './finding.js';

/** What `engines` of the package asks for. */
const OLDEST_NODE = [20, 19] as const;

/** @param version such as `22.11.0` */
export function checkRuntime(version = process.versions.node, uid = process.getuid?.()): Finding[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldest, oldestMinor] = OLDEST_NODE;
  return [
    major > oldest || (major === oldest && minor >= oldestMinor)
      ? ok('node', `Node ${version}`)
      : fail('node', `Node ${version} is too old`, `use Node ${oldest}.${oldestMinor} or newer`),
    uid === 0 && !isContained()
      ? warn('process.user', 'this runs as root', 'run the service as a user of its own')
      : ok('process.user', uid === undefined ? 'cannot be told' : `user ${uid}`),
  ];
}

/** Root of a container with a user namespace is nobody outside. */
function isContained(): boolean {
  try {
    const [first = ''] = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\n/);
    return !/^\s*0\s+0\s/.test(first);
  } catch {
    return false;
  }
}
