import { describe, expect, it } from 'vitest';
import { packageErrors } from '../checks/observability-checks.js';
import { loadConfig } from '../load-config.js';

const { config } = loadConfig({}, '/nonexistent');
const everything = {
  redis: { ...config.redis, url: 'redis://127.0.0.1:6379' },
  metrics: { ...config.metrics, port: 0 },
  traces: { ...config.traces, endpoint: 'http://127.0.0.1:4318/v1/traces' },
  plugins: ['./own.mjs'],
};
const nothing = () => false;

describe('optional packages', () => {
  it('are not missed where no option asks for them', () => {
    expect(packageErrors(config, nothing)).toEqual([]);
  });

  it('that are missing are reported at the option that needs them, with the command that installs them', () => {
    expect(packageErrors(everything, nothing)).toEqual([
      { path: 'redis.url', message: 'needs what is not installed: npm install ioredis bullmq' },
      { path: 'metrics.port', message: 'needs what is not installed: npm install prom-client' },
      {
        path: 'traces.endpoint',
        message:
          'needs what is not installed: npm install @opentelemetry/api @opentelemetry/exporter-trace-otlp-http ' +
          '@opentelemetry/resources @opentelemetry/sdk-trace',
      },
      { path: 'plugins', message: 'needs what is not installed: npm install @nestjs/platform-express' },
    ]);
  });

  it('that are installed are not reported beside one that is missing', () => {
    expect(packageErrors(everything, (name) => name !== 'bullmq')).toEqual([
      { path: 'redis.url', message: 'needs what is not installed: npm install bullmq' },
    ]);
  });

  it('are found where they are installed, as they are in a checkout', () => {
    expect(packageErrors(everything)).toEqual([]);
  });
});
