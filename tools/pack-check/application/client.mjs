// The official client, as another process of another team would call the application.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url] = process.argv.slice(2);
const headers = { 'X-MCP-API-Key': 'key-of-the-clerk' };
const client = new Client({ name: 'pack-check', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const progress = [];
const call = (name, args) =>
  client.callTool({ name, arguments: args }, { onprogress: (update) => progress.push(update.message) });
const overdue = await call('overdue_invoices', { before: '2026-03-01T00:00:00.000Z' });
const withheld = await call('query_class', { class_name: 'Invoice', where: { margin: 31 } });
const { tools } = await client.listTools();
await client.close();
console.log(JSON.stringify({ overdue, withheld, progress, tools: tools.map(({ name }) => name) }));
