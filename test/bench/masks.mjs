// What masks cost a call: where none apply to the agent, and where three of four columns are masked.
import { compare, once } from './load.mjs';
import { call, OPEN, startDatabase, startParley } from './works.mjs';

const agent = { tenantId: 'northside', rateLimit: 1_000_000_000 };
const MASKS = { sku: 'hash', price: 'mask', format: { mask: { keep: 2 } } };
const openToAdmin = (masks) =>
  Object.fromEntries(Object.entries(masks).map(([name, form]) => [name, { readonly: form, admin: 'none' }]));

const parley = (uri, masks) =>
  startParley({
    uri,
    agents: { reader: agent, admin: { ...agent, permissions: 'admin' } },
    auth: ['reader', 'admin'].map((name) => ({ apiKey: `${name}-key`, agent: name })),
    policy: {
      ...OPEN,
      maskingKey: 'the secret behind pseudonyms of a measurement',
      classes: {
        Listing: {
          fields: ['sku', 'format', 'price', 'stock'],
          tenantScope: { field: 'orgId' },
          ...(masks && { masks }),
        },
      },
    },
  });

const body = call('query_class', { class_name: 'Listing', order: 'objectId', limit: 10 });
const as = (service, name) => ({ ...service, body, headers: { 'x-mcp-api-key': `${name}-key` } });

const database = await startDatabase();
const without = await parley(database.url, null);
const lifted = await parley(database.url, openToAdmin(MASKS));
const masked = await parley(database.url, MASKS);
const { text } = await once(masked.url, body, as(masked, 'admin').headers);
if (!text.includes('***') || !text.includes('h_')) throw new Error(`nothing is masked: ${text}`);

const [none, idle, busy] = await compare([as(without, 'admin'), as(lifted, 'admin'), as(masked, 'admin')], {
  count: 1500,
});
for (const [work, one] of [
  ['masks that do not apply to the agent', idle],
  ['ten rows with a pseudonym, an ending and a mask each', busy],
]) {
  const figures = `${one.cpu.toFixed(0)} / ${none.cpu.toFixed(0)} µs CPU`;
  console.log(`${work}, against a class without masks: ${(one.cpu / none.cpu).toFixed(2)} (${figures})`);
}
for (const service of [without, lifted, masked, database]) await service.stop();
