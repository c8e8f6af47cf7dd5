// Runs under the newer Node of tools/conformance: connects the AI SDK's own MCP client, lists and calls, prints JSON.
import { createMCPClient } from '../../tools/conformance/node_modules/@ai-sdk/mcp/dist/index.js';

const [url, tool, json] = process.argv.slice(2);
const client = await createMCPClient({ transport: { type: 'http', url } });
try {
  const tools = await client.tools();
  const result = await tools[tool].execute(JSON.parse(json), {
    toolCallId: 'one',
    messages: [],
    context: {},
  });
  console.log(JSON.stringify({ names: Object.keys(tools), result }));
} finally {
  await client.close();
}
