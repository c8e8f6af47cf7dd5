import { RequestMethod, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { MODULE_PATH } from '@nestjs/common/constants.js';
import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';

/** `/a/b` of whatever slashes there are; empty for none. */
const segments = (path: string) =>
  path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => `/${part}`)
    .join('');

function versionsOf(config: ApplicationConfig, own: string | undefined): string[] {
  const versioning = config.getVersioning();
  if (versioning?.type !== VersioningType.URI) return [''];
  const prefix = versioning.prefix === false ? '' : (versioning.prefix ?? 'v');
  const given = own ?? versioning.defaultVersion;
  const versions = given === undefined ? [] : Array.isArray(given) ? given : [given];
  return versions.length === 0
    ? ['']
    : versions.map((one) => (one === VERSION_NEUTRAL ? '' : `/${prefix}${String(one)}`));
}

/** What MCP answers. */
const VERBS = [RequestMethod.GET, RequestMethod.POST, RequestMethod.DELETE];

/** @throws TypeError when it would be at one place for one verb and at another for the next */
function isExcluded(config: ApplicationConfig, path: string): boolean {
  const routes = config.getGlobalPrefixOptions().exclude ?? [];
  const excluded = VERBS.filter((verb) =>
    routes.some(
      ({ requestMethod, pathRegex }) =>
        [verb, RequestMethod.ALL, -1].includes(requestMethod) && pathRegex.test(path),
    ),
  );
  if (excluded.length === 0 || excluded.length === VERBS.length) return excluded.length > 0;
  throw new TypeError(
    `the global prefix excludes ${path} of Parley for some verbs and not for others: exclude GET, POST and DELETE, or none`,
  );
}

export interface MountedModule {
  readonly config: ApplicationConfig;
  readonly modules: ModulesContainer;
  readonly module: object;
  /** Of the module, where the application has versions in its URLs. */
  readonly version: string | undefined;
}

/**
 * What the application puts before a path of a module, as it does for its controllers; one for each version.
 * @throws TypeError
 */
export function basesOf({ config, modules, module, version }: MountedModule, path: string): string[] {
  const modulePath = Reflect.getMetadata(MODULE_PATH + modules.applicationId, module) as string | undefined;
  const own = segments(modulePath ?? '');
  // Like Nest, an exclusion is a path without prefix and version.
  const prefix = isExcluded(config, `${own}${path}`) ? '' : segments(config.getGlobalPrefix());
  return versionsOf(config, version).map((one) => `${prefix}${one}${own}`);
}
