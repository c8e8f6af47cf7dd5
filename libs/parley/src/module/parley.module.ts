import {
  ConfigurableModuleBuilder,
  type DynamicModule,
  type InjectionToken,
  Module,
  type Provider,
  type Type,
} from '@nestjs/common';
import {
  ApplicationConfig,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import { assertOptions } from '#policy';
import { OFFERED_PROVIDERS } from '../instance/index.js';
import { type CallSteps, createdSteps, stepProviders } from './call-steps.js';
import { listDeclaredClasses, FeatureList } from './features.js';
import { ParleyFeatureModule } from './parley-feature.module.js';
import { ParleyHealthIndicator } from './health-indicator.js';
import { type HostDependencies, openParley, ParleyHost } from './parley-host.js';
import { getParleyToken, Parley } from './parley.js';
import type { ParleyModuleExtras, ParleyModuleOptions } from './parley-options.js';
import { BoundProviders, OVERRIDABLE_TOKENS, UNBOUND } from './overridable-providers.js';

/** Parts of the default instance that tools can inject by class. */
const DEFAULT_EXPORTS: readonly Provider[] = OFFERED_PROVIDERS.map((token) => ({
  provide: token,
  useFactory: (parley: Parley) => parley.get(token),
  inject: [Parley],
}));

const EXTRAS: ParleyModuleExtras = {
  name: 'default',
  isGlobal: true,
  imports: [],
  providers: [],
  discovery: undefined,
  version: undefined,
  guards: [],
  interceptors: [],
};

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<ParleyModuleOptions>({
  moduleName: 'Parley',
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createParleyOptions')
  .setExtras(
    EXTRAS,
    (definition, { name = 'default', isGlobal, imports, providers, discovery, version, ...steps }) => {
      const offered = name === 'default' ? [...DEFAULT_EXPORTS, ParleyHealthIndicator] : [];
      const token = getParleyToken(name);
      return {
        ...definition,
        global: isGlobal ?? true,
        imports: [DiscoveryModule, ...new Set([...(definition.imports ?? []), ...(imports ?? [])])],
        providers: [
          ...(definition.providers ?? []),
          ...UNBOUND,
          ...(providers ?? []),
          ...stepProviders(steps),
          hostProvider({ name, version, discovers: discovery }, steps),
          { provide: token, useFactory: ({ parley }: ParleyHost) => parley, inject: [ParleyHost] },
          ...offered,
        ],
        exports: [token, ...offered.map(readToken)],
      };
    },
  )
  .build();

const readToken = (provider: Provider): InjectionToken =>
  typeof provider === 'function' ? provider : provider.provide;

/** Opens the instance when its options and bindings are resolved, which may depend on other modules. */
function hostProvider(
  {
    name,
    version,
    discovers,
  }: Pick<HostDependencies, 'name' | 'version'> & { readonly discovers: boolean | undefined },
  steps: CallSteps,
): Provider {
  return {
    provide: ParleyHost,
    useFactory: async (
      options: ParleyModuleOptions,
      discovery: DiscoveryService,
      http: HttpAdapterHost,
      config: ApplicationConfig,
      modules: ModulesContainer,
      own: ModuleRef,
      ...values: unknown[]
    ) => {
      const hosts = [...modules.values()].filter(({ providers }) => providers.has(ParleyHost));
      const serving = { name, discovers: discovers ?? hosts.length === 1 };
      const declared = listDeclaredClasses(serving, discovery);
      const bound = new BoundProviders(values);
      const opened = await openParley(options, { name, declared, bound });
      const module = ParleyModule;
      const { endpoints, globalEnhancers, environment = process.env } = options;
      return new ParleyHost({
        name,
        version,
        discovers: serving.discovers,
        endpoints,
        globalEnhancers,
        environment,
        admits: bound.admits || (options.auth ?? []).length > 0,
        module,
        opened,
        discovery,
        http,
        config,
        modules,
        steps: () => createdSteps(steps, own),
      });
    },
    inject: [
      MODULE_OPTIONS_TOKEN,
      DiscoveryService,
      HttpAdapterHost,
      ApplicationConfig,
      ModulesContainer,
      ModuleRef,
      ...OVERRIDABLE_TOKENS,
    ],
  };
}

/**
 * Parley inside another NestJS application (docs/guide/module.md). One application may contain several instances, each
 * with its own options, path and tools.
 */
@Module({})
export class ParleyModule extends ConfigurableModuleClass {
  /**
   * Chooses the instance that serves the tools, prompts, resources and methods of these classes. They are providers of
   * modules of the application, which make them.
   * @param setting the instance (default `default`)
   */
  static forFeature(classes: readonly Type[], setting: { readonly instance?: string } = {}): DynamicModule {
    assertOptions('forFeature', setting, { instance: true });
    const { instance = 'default' } = setting;
    return {
      module: ParleyFeatureModule,
      providers: [{ provide: FeatureList, useValue: new FeatureList(instance, classes) }],
    };
  }
}
