// An MCP client with a person in front of it: shows progress, answers questions, and cancels on request.
//   client TOOL [JSON] [--agent NAME] [--answer JSON] [--impatient]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Whose key is shown. */
    agent: { type: 'string', default: 'keeper' },
    /** What is filled into the form when the server asks; without it every question is declined. */
    answer: { type: 'string' },
    /** Cancels at the first sign of progress. */
    impatient: { type: 'boolean', default: false },
  },
});
const [tool = 'reorder', args = '{}'] = positionals;
const say = (line: string) => process.stdout.write(`${line}\n`);

const client = new Client(
  { name: 'example', version: '1' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
);
client.setRequestHandler('elicitation/create', ({ params }) => {
  say(`? ${params.message}`);
  if (values.answer === undefined) return { action: 'decline' };
  return { action: 'accept', content: JSON.parse(values.answer) as Record<string, string | boolean> };
});
const url = new URL(process.env['PARLEY_URL'] ?? 'http://127.0.0.1:3000/mcp');
const headers = { 'X-MCP-API-Key': `${values.agent}-in-development` };
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));

const giveUp = new AbortController();
try {
  const result = await client.callTool(
    { name: tool, arguments: JSON.parse(args) as Record<string, unknown> },
    {
      signal: giveUp.signal,
      onprogress: ({ progress, total, message }) => {
        say(`… ${progress}${total === undefined ? '' : `/${total}`} ${message}`);
        if (values.impatient) giveUp.abort('enough');
      },
    },
  );
  const [block] = result.content;
  say(`${result.isError ? 'refused: ' : ''}${block?.type === 'text' ? block.text : ''}`);
} catch (error) {
  say(`given up: ${String(error)}`);
} finally {
  await client.close();
}
