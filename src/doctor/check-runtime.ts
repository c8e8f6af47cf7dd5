import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { LoadedConfig } from '#config';
import { type LoadedWithPlugins, toolsOfPlugins } from '#parley/instance';
import { fail, type Finding, ok, warn } from './finding.js';

/** What `engines` of the package requires. */
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

/** Root of a container with a user namespace has no rights outside. */
function isContained(): boolean {
  try {
    const [first = ''] = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\n/);
    return !/^\s*0\s+0\s/.test(first);
  } catch {
    return false;
  }
}

/** Maximum body bytes at which a hundred callers do not yet fill the memory of a usual container. */
const LARGE_BODY = 16 * 1024 * 1024;
const MANY_CALLS_A_SECOND = 1_000;

/** Limits that the operator raised; all others have the values of docs/reference/limits.md. */
export function checkLimits({ config, agents, policy }: LoadedConfig): Finding[] {
  const { server, exports: exportConfig } = config;
  const findings: Finding[] = [];
  if (server.maxConcurrentDispatchers === null)
    findings.push(
      warn(
        'limits.dispatchers',
        'any number of answers is streamed at once',
        'set server.maxConcurrentDispatchers',
      ),
    );
  if (server.maxBodySize > LARGE_BODY)
    findings.push(
      warn('limits.body', `a request may be ${server.maxBodySize} bytes long`, 'lower server.maxBodySize'),
    );
  for (const { name, rate } of agents.values()) {
    if (rate && rate.limit / rate.window > MANY_CALLS_A_SECOND)
      findings.push(
        warn(
          'limits.rate',
          `'${name}' may call ${rate.limit} times in ${rate.window} s`,
          `lower agents.${name}.rateLimit`,
        ),
      );
  }
  const budgets = [...agents.values()].filter(({ budget }) => budget).length;
  findings.push(
    ok(
      'limits',
      `bodies of ${server.maxBodySize} bytes, ${server.maxConcurrentDispatchers ?? 'unbounded'} streams, exports of ` +
        `${exportConfig.maxRows} rows; ${budgets} of ${agents.size} agents and ${policy.tenantBudget ? 'every tenant' : 'no tenant'} have a data budget`,
    ),
  );
  return findings;
}

const IMPORTS = /(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"\n]{1,200})['"]/g;
/** Imports of a plugin that cannot bypass the policy. */
const HARMLESS_IMPORTS =
  /^(@parley\/server|@nestjs\/common|reflect-metadata|rxjs|rxjs\/operators|node:(path|url|util|crypto))$/;
/** Names that return any provider of the service, including ungoverned stores, or that lead to ungoverned rows. */
const CONTAINER = /\b(UngovernedData|ModuleRef|ModulesContainer|DiscoveryService|LazyModuleLoader)\b/;

/**
 * The operator's plugin code, and the parts that can access data without the policy. Reads only the named files, not
 * their imports.
 */
export function checkPlugins({ plugins }: LoadedWithPlugins, files: readonly string[]): Finding[] {
  if (files.length === 0) return [ok('plugins', 'none')];
  if (plugins.length === 0)
    return [
      fail('plugins', 'not loaded: strangers may have written them', 'see files.writable'),
      ...files.flatMap((file) => rawAccess(file)),
    ];
  const tools = toolsOfPlugins(plugins).map(({ definition }) => definition.name);
  return [
    ok(
      'plugins',
      `${files.map((file) => basename(file)).join(', ')}: ${tools.length === 0 ? 'no tools' : tools.join(', ')}`,
    ),
    ...files.flatMap((file) => rawAccess(file)),
  ];
}

function rawAccess(file: string): Finding[] {
  const text = readFileSync(file, 'utf8');
  const imported = [...text.matchAll(IMPORTS)]
    .map(([, name = '']) => name)
    .filter((name) => !HARMLESS_IMPORTS.test(name));
  const container = CONTAINER.exec(text)?.[1];
  const reached = [...new Set([...imported, ...(container === undefined ? [] : [container])])];
  if (reached.length === 0) return [];
  return [
    warn(
      'plugins.raw_access',
      `${basename(file)} may reach data past the policy: it uses ${reached.slice(0, 10).join(', ')}`,
      'review it as you would the service itself; call.records is governed, its own doors are not',
    ),
  ];
}
