import { createRequire } from 'node:module';
import { hasRedis } from '#core';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';

interface PackageUsers extends Pick<ParleyConfig, 'redis' | 'traces' | 'metrics'> {
  /** Of a service. Its bundle holds what they need, but they run on what they import. */
  readonly plugins?: readonly string[];
}

/** Packages that are installed only where they are used, by the option that needs them. */
const OPTIONAL: readonly {
  readonly path: string;
  readonly packages: readonly string[];
  readonly isUsed: (config: PackageUsers) => boolean;
}[] = [
  { path: 'redis.url', packages: ['ioredis', 'bullmq'], isUsed: ({ redis }) => hasRedis(redis) },
  { path: 'metrics.port', packages: ['prom-client'], isUsed: ({ metrics }) => metrics.port !== null },
  {
    path: 'traces.endpoint',
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
    ],
    isUsed: ({ traces }) => traces.endpoint !== null,
  },
  {
    path: 'plugins',
    packages: ['@nestjs/platform-express'],
    isUsed: ({ plugins = [] }) => plugins.length > 0,
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
 * Optional packages that the configuration needs and that are not installed, found before anything is opened.
 * @param installed default: whether Node finds it from here
 */
export function packageErrors(
  config: PackageUsers,
  installed: (name: string) => boolean = isInstalled,
): ConfigIssue[] {
  return OPTIONAL.filter(({ isUsed }) => isUsed(config)).flatMap(({ path, packages }) => {
    const missing = packages.filter((name) => !installed(name));
    if (missing.length === 0) return [];
    const names = missing.join(' ');
    return [{ path, message: `needs what is not installed: npm install ${names}` }];
  });
}
