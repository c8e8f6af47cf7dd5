// `npm run bench -- lists [count]`: `tools/list` of 24 and of 240 tools, with a key and a policy, against bare handlers of the same bytes.
import { join } from 'node:path';
import { stringify } from 'yaml';
import { listed, listingRows } from './listing.mjs';
import { folderWith, root, SERVICE, start } from './processes.mjs';

const SIZES = [24, 240];
const count = Number(process.argv[2] ?? 3000);
const headers = { 'x-mcp-api-key': 'bench-key' };
const made = Array.from({ length: Math.max(...SIZES) }, (_, index) => `made_${index}`);

for (const size of SIZES) {
  const config = {
    server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
    // Only tools of its own, so that there are as many as are asked for.
    agents: {
      bench: { tenantId: 'northside', rateLimit: 1_000_000_000, tools: { only: made.slice(0, size) } },
    },
    auth: [{ apiKey: 'bench-key', agent: 'bench' }],
    policy: {
      unlistedClasses: 'allow',
      suppressMasterKeyWarning: true,
      classes: { Listing: { fields: ['sku', 'format'], tenantScope: { field: 'orgId' } } },
    },
    plugins: [join(root, 'test/bench/many-tools.mjs')],
  };
  const service = await start(SERVICE, {
    cwd: folderWith({ 'parley.yaml': stringify(config) }),
    env: { BENCH_TOOLS: String(made.length) },
    ready: /Parley listening on (\S+)/,
  });
  const { tools } = await listed(service, headers);
  if (tools.length !== size) throw new Error(`lists ${tools.length} tools where ${size} were made`);
  for (const { work, value, target, met } of await listingRows(
    service,
    headers,
    `tools/list of ${size}`,
    count,
  ))
    console.log(`${work}: ${value}, ${target}: ${met ? 'yes' : 'NO'}`);
  await service.stop();
}
