import { createRequire } from 'node:module';
import type { ConfigFault } from './config-faults.js';
import type { ParleyConfig } from './config.js';

/** What is only installed where it is used, by the option that asks for it. */
const OPTIONAL: readonly {
  readonly path: string;
  readonly packages: readonly string[];
  readonly asked: (config: Pick<ParleyConfig, 'redis' | 'traces' | 'metrics'>) => boolean;
}[] = [
  { path: 'redis.url', packages: ['ioredis', 'bullmq'], asked: ({ redis }) => redis.url !== null },
  { path: 'metrics.port', packages: ['prom-client'], asked: ({ metrics }) => metrics.port !== null },
  {
    path: 'traces.endpoint',
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
    asked: ({ traces }) => traces.endpoint !== null,
  },
];

const { resolve } = createRequire(import.meta.url);

/** Looks for it and loads nothing. */
function isInstalled(name: string): boolean {
  try {
    return resolve(name) !== '';
  } catch {
    return false;
  }
}

/**
 * Optional packages that the configuration needs and nobody installed: told with all other faults, before anything is opened.
 * @param installed default: whether Node finds it from here
 */
export function packageFaults(
  config: Pick<ParleyConfig, 'redis' | 'traces' | 'metrics'>,
  installed: (name: string) => boolean = isInstalled,
): ConfigFault[] {
  return OPTIONAL.filter(({ asked }) => asked(config)).flatMap(({ path, packages }) => {
    const missing = packages.filter((name) => !installed(name));
    if (missing.length === 0) return [];
    const names = missing.join(' ');
    return [{ path, message: `needs what is not installed: npm install ${names}` }];
  });
}
