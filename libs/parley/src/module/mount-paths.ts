import { VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
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

/** What the application puts before the paths of a module, as it does for its controllers. @param own version of the module */
export function basesOf(
  config: ApplicationConfig,
  modules: ModulesContainer,
  module: object,
  own: string | undefined,
): string[] {
  const modulePath = Reflect.getMetadata(MODULE_PATH + modules.applicationId, module) as string | undefined;
  const prefix = segments(config.getGlobalPrefix());
  return versionsOf(config, own).map((version) => `${prefix}${version}${segments(modulePath ?? '')}`);
}
