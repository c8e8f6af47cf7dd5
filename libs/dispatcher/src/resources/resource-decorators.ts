import 'reflect-metadata';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { assertOptions, type OptionNames } from '#policy';
import { type EmbeddedResource, listMethods, refuseDecoratedParameters } from '#tools';
import {
  type ListedResource,
  type ListedTemplate,
  type ResourceCall,
  type ResourceProvider,
  ResourceRegistry,
} from './resource-registry.js';

/** Options that make a method of a provider a resource. */
export type ResourceOptions = Omit<ListedResource, 'size'>;
/** Options that make a method of a provider the resources of a template. */
export type ResourceTemplateOptions = ListedTemplate;

const RESOURCE_METADATA = Symbol('parley:resource');
const TEMPLATE_METADATA = Symbol('parley:resource-template');

const SHOWN_OPTIONS = { name: true, title: true, description: true, mimeType: true } as const;

/**
 * Makes a method of an injectable provider a resource: `(call: ResourceCall) => content`. A text is sent as it is, bytes as such,
 * any other value as JSON; null: there is no such resource for this agent. It reads data through `call.records`.
 * @throws TypeError at declaration, for an unknown option or an address without a scheme
 */
export function ResourceMethod(options: ResourceOptions): MethodDecorator {
  assertOptions('@Resource', options, { ...SHOWN_OPTIONS, uri: true } satisfies OptionNames<ResourceOptions>);
  readScheme('@Resource', options.uri);
  return (_prototype, _name, descriptor) =>
    Reflect.defineMetadata(RESOURCE_METADATA, options, descriptor.value as object);
}

/**
 * The same for every address of a template: `({ id }, call: ResourceCall) => content`, for `invoices://{id}`. A variable is one
 * part of a path.
 * @throws TypeError as `@Resource`
 */
export function ResourceTemplateMethod(options: ResourceTemplateOptions): MethodDecorator {
  assertOptions('@ResourceTemplate', options, {
    ...SHOWN_OPTIONS,
    uriTemplate: true,
  } satisfies OptionNames<ResourceTemplateOptions>);
  readScheme('@ResourceTemplate', options.uriTemplate);
  return (_prototype, _name, descriptor) =>
    Reflect.defineMetadata(TEMPLATE_METADATA, options, descriptor.value as object);
}

/** Of RFC 3986, with the braces of a template. */
const URI_CHARACTERS = /^[\w\-.~:/?#[\]@!$&'()*+,;=%{}]*$/;

function readScheme(decorator: string, address: unknown): string {
  const scheme = typeof address === 'string' ? /^([a-z][a-z0-9+.-]*):/.exec(address)?.[1] : undefined;
  if (scheme === undefined)
    throw new TypeError(
      `${decorator}: expected an address with a scheme in lower case, such as invoices://open`,
    );
  // Clients that check addresses would refuse the whole list.
  if (!URI_CHARACTERS.test(address as string))
    throw new TypeError(
      `${decorator}: '${String(address)}' is not a URI: write blanks as %20, and other characters so too`,
    );
  return scheme;
}

/** Whether a provider's prototype declares resources. */
export const hasResources = (prototype: object): boolean =>
  [...listMethods(prototype)].some(([, method]) =>
    [RESOURCE_METADATA, TEMPLATE_METADATA].some((key) => Reflect.hasOwnMetadata(key, method)),
  );

type Read = (uri: string, call: ResourceCall) => Promise<readonly EmbeddedResource[] | undefined>;

/** The resources of one scheme that methods declare. */
class DeclaredResources implements ResourceProvider {
  readonly templates: ListedTemplate[] = [];
  readonly resources: ListedResource[] = [];
  private readonly byAddress = new Map<string, Read>();
  private readonly byPattern: { readonly pattern: RegExp; readonly read: Read }[] = [];

  constructor(readonly scheme: string) {}

  add(provider: object, methodName: string, options: ResourceOptions): void {
    if (this.byAddress.has(options.uri)) throw new TypeError(`@Resource: '${options.uri}' is declared twice`);
    this.resources.push(options);
    this.byAddress.set(options.uri, async (uri, call) =>
      toContents(uri, options, await invoke(provider, methodName, call)),
    );
  }

  addTemplate(provider: object, methodName: string, options: ResourceTemplateOptions): void {
    const pattern = toPattern(options.uriTemplate);
    this.templates.push(options);
    this.byPattern.push({
      pattern,
      read: async (uri, call) => {
        const variables = readVariables(pattern.exec(uri)?.groups);
        return variables && toContents(uri, options, await invoke(provider, methodName, variables, call));
      },
    });
  }

  list(): readonly ListedResource[] {
    return this.resources;
  }

  async read(uri: string, call: ResourceCall): Promise<readonly EmbeddedResource[] | undefined> {
    const read = this.byAddress.get(uri) ?? this.byPattern.find(({ pattern }) => pattern.test(uri))?.read;
    return read?.(uri, call);
  }
}

function invoke(provider: object, methodName: string, ...args: unknown[]): unknown {
  return Reflect.apply(Reflect.get(provider, methodName) as (...all: unknown[]) => unknown, provider, args);
}

/** RFC 6570, level 1: each variable is one part of a path. */
function toPattern(template: string): RegExp {
  const parts = template.split(/\{([A-Za-z_]\w*)\}/);
  const escape = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${parts.map((part, at) => (at % 2 ? `(?<${part}>[^/?#]+)` : escape(part))).join('')}$`);
}

function readVariables(groups: Record<string, string> | undefined): Record<string, string> | undefined {
  if (!groups) return undefined;
  try {
    return Object.fromEntries(
      Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
  } catch {
    return undefined;
  }
}

function toContents(
  uri: string,
  { mimeType }: { readonly mimeType?: string },
  value: unknown,
): readonly EmbeddedResource[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return [{ uri, mimeType: mimeType ?? 'text/plain', text: value }];
  if (value instanceof Uint8Array)
    return [
      {
        uri,
        mimeType: mimeType ?? 'application/octet-stream',
        blob: Buffer.from(value).toString('base64'),
      },
    ];
  return [{ uri, mimeType: mimeType ?? 'application/json', text: JSON.stringify(value) }];
}

/** The resources that methods of these providers declare, by scheme. @throws TypeError for a decorated parameter, and an address twice */
export function listResources(providers: Iterable<object>): ResourceProvider[] {
  const schemes = new Map<string, DeclaredResources>();
  const open = (decorator: string, address: string) => {
    const scheme = readScheme(decorator, address);
    const known = schemes.get(scheme) ?? new DeclaredResources(scheme);
    schemes.set(scheme, known);
    return known;
  };
  for (const provider of providers) {
    for (const [methodName, method] of listMethods(Object.getPrototypeOf(provider) as object)) {
      const resource = Reflect.getOwnMetadata(RESOURCE_METADATA, method) as ResourceOptions | undefined;
      const template = Reflect.getOwnMetadata(TEMPLATE_METADATA, method) as
        ResourceTemplateOptions | undefined;
      if (resource ?? template) refuseDecoratedParameters(provider, methodName, '@Resource');
      if (resource) open('@Resource', resource.uri).add(provider, methodName, resource);
      if (template)
        open('@ResourceTemplate', template.uriTemplate).addTemplate(provider, methodName, template);
    }
  }
  return [...schemes.values()];
}

/** Finds `@Resource` and `@ResourceTemplate` methods on the application's providers and registers them. */
@Injectable()
export class ResourceExplorer implements OnModuleInit {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: ResourceRegistry,
  ) {}

  onModuleInit(): void {
    const instances = this.discovery.getProviders().flatMap(({ instance }) => {
      const made = instance as unknown;
      return typeof made === 'object' && made !== null && Object.getPrototypeOf(made) !== null ? [made] : [];
    });
    for (const resources of listResources(instances)) this.registry.register(resources);
  }
}
