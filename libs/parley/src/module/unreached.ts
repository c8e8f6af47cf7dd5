import { Logger, RequestMethod, type Type } from '@nestjs/common';
import { METHOD_METADATA, MODULE_PATH, PATH_METADATA, VERSION_METADATA } from '@nestjs/common/constants.js';
import {
  type ApplicationConfig,
  type DiscoveryService,
  LazyModuleLoader,
  type ModulesContainer,
} from '@nestjs/core';
import { RoutePathFactory } from '@nestjs/core/router/route-path-factory.js';
import { listOffered } from './features.js';
import { listRoutes } from '../route-guard/declared-routes.js';

interface Application {
  readonly config: ApplicationConfig;
  readonly discovery: DiscoveryService;
  readonly modules: ModulesContainer;
}

/** Warns of routes of controllers that an instance answers before the framework sees them. */
export function warnOfRoutesBelow(served: readonly string[], application: Application): void {
  const below = [...listRoutePaths(application)].filter(([, path]) =>
    served.some((at) => path === at || path.startsWith(`${at}/`)),
  );
  if (below.length === 0) return;
  const named = [...new Set(below.map(([route, path]) => `${route} ${path}`))].join(', ');
  new Logger('Parley').warn(
    `routes of the application below ${served.join(', ')} are never reached: ${named}; move them, or server.path`,
  );
}

/** Each path of each route of a controller, as Nest makes them. */
function* listRoutePaths({
  config,
  discovery,
  modules,
}: Application): Generator<[route: string, path: string]> {
  const paths = new RoutePathFactory(config);
  const versioningOptions = config.getVersioning();
  for (const { controller, handler, host } of listRoutes(discovery)) {
    const read = <T>(key: string, from: object) => Reflect.getMetadata(key, from) as T;
    const requestMethod = read<RequestMethod>(METHOD_METADATA, handler);
    const modulePath = host && read<string | undefined>(MODULE_PATH + modules.applicationId, host);
    const ownVersion = read<string | string[] | undefined>(VERSION_METADATA, controller);
    for (const ctrlPath of [read<string | string[]>(PATH_METADATA, controller)].flat())
      for (const methodPath of [read<string | string[]>(PATH_METADATA, handler)].flat())
        for (const path of paths.create(
          {
            ctrlPath,
            methodPath,
            globalPrefix: config.getGlobalPrefix(),
            ...(modulePath !== undefined && { modulePath }),
            controllerVersion: ownVersion ?? versionOf(config),
            methodVersion: read(VERSION_METADATA, handler),
            ...(versioningOptions && { versioningOptions }),
          } as Parameters<RoutePathFactory['create']>[0],
          requestMethod,
        ))
          yield [`${controller.name}.${handler.name}`, path];
  }
}

const versionOf = (config: ApplicationConfig): unknown => {
  const versioning = config.getVersioning();
  return versioning && 'defaultVersion' in versioning ? versioning.defaultVersion : undefined;
};

/** Warns of tools in modules that the application loads after its start, when the lists of tools are complete. */
export function warnOfLazyTools(discovery: DiscoveryService): void {
  const loader = discovery
    .getProviders()
    .map(({ instance }) => instance as unknown)
    .find((instance) => instance instanceof LazyModuleLoader);
  if (loader === undefined) return;
  const known = new Set<Type>(listOffered(discovery));
  // Nest has no hook for it.
  const load = loader.load.bind(loader);
  loader.load = async (...args) => {
    const loaded = await load(...args);
    const late = [...listOffered(discovery)].filter((type) => !known.has(type));
    for (const type of late) known.add(type);
    if (late.length > 0)
      new Logger('Parley').warn(
        `tools of modules that are loaded lazily are not served: ${late.map(({ name }) => name).join(', ')}; ` +
          'import their module, or register them with ToolRegistry',
      );
    return loaded;
  };
}
