// `npm run editor-links -- [--url http://127.0.0.1:3001/mcp] [--key]`: links that add a service to VS Code and Cursor with one click.
// With --key the editor sends an API key, which VS Code asks for and Cursor takes from MCP_API_KEY; the key is never in a link.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const NAME = 'parley';
export const LOCAL = 'http://127.0.0.1:3001/mcp';

/** The configuration of a server in VS Code, with what it asks for. */
function vsCode(url, key) {
  const input = { type: 'promptString', id: 'parley-key', description: 'Parley API key', password: true };
  return {
    name: NAME,
    ...(key && { inputs: [input] }),
    type: 'http',
    url,
    ...(key && { headers: { Authorization: `Bearer \${input:${input.id}}` } }),
  };
}

/** The configuration of a server in Cursor. */
const cursor = (url, key) => ({
  url,
  ...(key && { headers: { Authorization: 'Bearer ${env:MCP_API_KEY}' } }),
});

/** @param {{ url?: string, key?: boolean }} options */
export function editorLinks({ url = LOCAL, key = false } = {}) {
  const config = Buffer.from(JSON.stringify(cursor(url, key))).toString('base64');
  return {
    vsCode: `vscode:mcp/install?${encodeURIComponent(JSON.stringify(vsCode(url, key)))}`,
    cursor: `cursor://anysphere.cursor-deeplink/mcp/install?name=${NAME}&config=${encodeURIComponent(config)}`,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { url: { type: 'string' }, key: { type: 'boolean' } } });
  const { vsCode: forVsCode, cursor: forCursor } = editorLinks(values);
  console.log(`${forVsCode}\n${forCursor}`);
}
