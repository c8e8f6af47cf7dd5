// The official client, as another process of another team would call the application.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url] = process.argv.slice(2);
const progress = [];

async function connected(key) {
  const client = new Client({ name: 'pack-check', version: '1.0.0' });
  const headers = { 'X-MCP-API-Key': key };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const call = (name, args) =>
    client.callTool({ name, arguments: args }, { onprogress: (update) => progress.push(update.message) });
  return { client, call };
}

const OVERDUE = ['overdue_invoices', { before: '2026-03-01T00:00:00.000Z' }];
const { client, call } = await connected('key-of-the-clerk');
const overdue = await call(...OVERDUE);
const withheld = await call('query_class', { class_name: 'Invoice', where: { margin: 31 } });
const { tools } = await client.listTools();
// The throttler of the application permits three.
const more = [await call(...OVERDUE), await call(...OVERDUE), await call(...OVERDUE)];
await client.close();
const another = await connected('key-of-another');
more.push(await another.call(...OVERDUE));
await another.client.close();
const throttled = more.map(({ isError }) => isError === true);
console.log(JSON.stringify({ overdue, withheld, progress, throttled, tools: tools.map(({ name }) => name) }));
