import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { toolsOfPlugins, type LoadedWithPlugins } from '#instance';
import { type Finding, fail, ok, warn } from './finding.js';

const IMPORTS = /(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"\n]{1,200})['"]/g;
/** What a plugin can be made of without a way around the policy. */
const HARMLESS =
  /^(@parley\/server|@nestjs\/common|reflect-metadata|rxjs|rxjs\/operators|node:(path|url|util|crypto))$/;
/** Hands out any provider of the service, ungoverned stores among them, or is the way to ungoverned rows. */
const CONTAINER = /\b(UngovernedData|ModuleRef|ModulesContainer|DiscoveryService|LazyModuleLoader)\b/;

/** Code of the operator's and what of it can reach data past the policy. Reads the named files alone, not what they import. */
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
    .filter((name) => !HARMLESS.test(name));
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
