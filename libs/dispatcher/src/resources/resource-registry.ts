import type { Observable } from 'rxjs';
import { RegistryChanges } from '#tools';
import type { ResourceProvider, ResourceTemplate } from './resource-provider.js';

const SCHEME = /^[a-z][a-z0-9+.-]{0,31}$/;
const ADDRESS = /^([A-Za-z][A-Za-z0-9+.-]*):/;

/** The resources beside those of the classes, by URI scheme. */
export class ResourceRegistry {
  private readonly providers = new Map<string, ResourceProvider>();
  private readonly changed = new RegistryChanges('resources');

  /** Emits after every change. A subscriber that throws is logged; the others still hear of the change. */
  readonly changes: Observable<void> = this.changed.changes;

  /** Adds a provider. @returns takes it away again. @throws TypeError for a scheme that is taken or cannot be one */
  register(provider: ResourceProvider): () => void {
    const { scheme } = provider;
    if (!SCHEME.test(scheme)) throw new TypeError(`resources: '${scheme}' is not a URI scheme in lower case`);
    if (scheme === 'parse' || this.providers.has(scheme))
      throw new TypeError(`resources: the scheme '${scheme}' is taken`);
    this.providers.set(scheme, provider);
    this.changed.announce();
    return () => {
      if (this.providers.get(scheme) !== provider) return;
      this.providers.delete(scheme);
      this.changed.announce();
    };
  }

  /** In order of registration. */
  all(): readonly ResourceProvider[] {
    return [...this.providers.values()];
  }

  /** Of all providers. */
  get templates(): readonly ResourceTemplate[] {
    return this.all().flatMap(({ templates = [] }) => templates);
  }

  /** The provider of an address; schemes compare without case (RFC 3986 §3.1). */
  providerOf(uri: string): ResourceProvider | undefined {
    const scheme = ADDRESS.exec(uri)?.[1];
    return scheme === undefined ? undefined : this.providers.get(scheme.toLowerCase());
  }
}
