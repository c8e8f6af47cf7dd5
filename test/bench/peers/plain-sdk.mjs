// The official SDK as its own pages build it: createMcpHandler on node:http, one fresh server for each request.
import { createServer } from 'node:http';
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { countRows, findRows, groupRows, openRows } from './rows.mjs';
import { listen } from '../../../tools/free-port.mjs';
import { COUNT, FIND, GROUP } from './tool-texts.mjs';

const rows = await openRows();
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'plain', version: '1.0.0' });
  server.registerTool('find', FIND, async (args) => text(await findRows(rows, args)));
  server.registerTool('count', COUNT, async (args) => text(await countRows(rows, args)));
  server.registerTool('group', GROUP, async (args) => text(await groupRows(rows, args)));
  return server;
});
const answer = toNodeHandler(handler);
const validHost = localhostHostValidation();
const validOrigin = localhostOriginValidation();
const server = createServer((request, response) => {
  if (validHost(request, response) && validOrigin(request, response)) void answer(request, response);
});
console.log(`listening on http://127.0.0.1:${await listen(server)}/mcp`);
