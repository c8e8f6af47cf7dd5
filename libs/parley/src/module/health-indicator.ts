import { Inject, Injectable } from '@nestjs/common';
import { Parley } from './parley.js';

interface Indicated {
  readonly status: 'up' | 'down';
  /** `up` or `down` by name. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
}

/** For `HealthCheckService` of @nestjs/terminus: down while a dependency is down, and while the instance shuts down. */
@Injectable()
export class ParleyHealthIndicator {
  /** @internal Made by the module. */
  constructor(@Inject(Parley) private readonly parley: Parley) {}

  /** The terminus result under `key`. @param parley default: the default instance */
  async isHealthy<Key extends string>(key: Key, parley = this.parley): Promise<Record<Key, Indicated>> {
    const { ready, dependencies } = await parley.readiness();
    return { [key]: { status: ready ? 'up' : 'down', dependencies } } as Record<Key, Indicated>;
  }
}
