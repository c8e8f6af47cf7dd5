// `npm run bench -- lists [count]`: `tools/list` of 24 and of 240 tools, with a key and a policy, against bare handlers of the same bytes.
import { join } from 'node:path';
import { listed, listingRows } from './listing.mjs';
import { root } from './processes.mjs';
import { HEADERS, startParley } from './works.mjs';

const SIZES = [24, 240];
const count = Number(process.argv[2] ?? 3000);
const made = Array.from({ length: Math.max(...SIZES) }, (_, index) => `made_${index}`);

for (const size of SIZES) {
  const service = await startParley(
    {
      // Only tools of its own, so that there are as many as are asked for.
      agents: {
        bench: { tenantId: 'northside', rateLimit: 1_000_000_000, tools: { only: made.slice(0, size) } },
      },
      auth: [{ apiKey: 'bench-key', agent: 'bench' }],
      plugins: [join(root, 'test/bench/many-tools.mjs')],
    },
    { env: { BENCH_TOOLS: String(made.length) } },
  );
  const { tools } = await listed(service, HEADERS);
  if (tools.length !== size) throw new Error(`lists ${tools.length} tools where ${size} were made`);
  for (const { work, value, target, met } of await listingRows(
    service,
    HEADERS,
    `tools/list of ${size}`,
    count,
  ))
    console.log(`${work}: ${value}, ${target}: ${met ? 'yes' : 'NO'}`);
  await service.stop();
}
