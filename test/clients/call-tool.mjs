// Lists and calls tools as one client of another maker does, and prints what it saw as JSON:
// `node call-tool.mjs CLIENT URL TOOL ARGUMENTS`.
const name = 'parley';

/**
 * What a client shows of a service: the names of its tools, and the answer of one call as that client hands it to a model.
 * @typedef {{ names: string[], answer: unknown }} Seen
 * @typedef {{ url: string, tool: string, args: Record<string, unknown> }} Question
 * @type {Record<string, (question: Question) => Promise<Seen>>}
 */
const CLIENTS = {
  'ai-sdk': async ({ url, tool, args }) => {
    const { createMCPClient } = await import('@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url } });
    const tools = await client.tools();
    const answer = await tools[tool]?.execute(args, { toolCallId: 'one', messages: [], context: {} });
    await client.close();
    return { names: Object.keys(tools), answer };
  },
  langchain: async ({ url, tool, args }) => {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({
      throwOnLoadError: true,
      mcpServers: { [name]: { transport: 'http', url } },
    });
    const tools = await client.getTools();
    const answer = await tools
      .find((one) => one.name === tool)
      ?.invoke(args)
      .catch((/** @type {Error} */ error) => error.message);
    await client.close();
    return { names: tools.map((one) => one.name), answer };
  },
  'openai-agents': async ({ url, tool, args }) => {
    const { MCPServerStreamableHttp, RunContext, getAllMcpTools } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ url, name });
    await server.connect();
    // As an agent holds them for its model: schemas in OpenAI's strict form.
    const tools = await getAllMcpTools({ mcpServers: [server], convertSchemasToStrict: true });
    const found = tools.find((one) => one.name === tool);
    const answer = found?.type === 'function' && (await found.invoke(new RunContext(), JSON.stringify(args)));
    await server.close();
    return { names: tools.map((one) => one.name), answer };
  },
  mastra: async ({ url, tool, args }) => {
    const { MCPClient } = await import('@mastra/mcp');
    const client = new MCPClient({ servers: { [name]: { url: new URL(url) } } });
    const tools = await client.listTools();
    const answer = await tools[`${name}_${tool}`]?.execute?.(args, /** @type {any} */ ({}));
    await client.disconnect();
    return { names: Object.keys(tools).map((one) => one.slice(name.length + 1)), answer };
  },
};

const [client = '', url = '', tool = '', json = '{}'] = process.argv.slice(2);
const seen = await CLIENTS[client]?.({ url, tool, args: JSON.parse(json) });
console.log(JSON.stringify(seen));
