import { Agent, type McpRequest, compileAgentDefinition, refusals, Unauthorized } from '#core';
import { AuthenticationUnavailable, Authenticator, type CredentialSource } from '#auth';
import { smallTool } from '#dispatcher/contracts';
import { type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';
import { Downloads } from '../http/edge-dependencies.js';

const DEFINITION = compileAgentDefinition('test');

/**
 * `X-MCP-API-Key` names the caller, `ada as weak` with another agent; `wrong` is not a caller, `broken` makes the
 * authenticator fail.
 */
export class KeyAuthenticator extends Authenticator {
  override challenge: string | undefined = undefined;
  readonly seen: CredentialSource[] = [];
  /** Keys that are no longer valid. */
  readonly takenBack = new Set<unknown>();
  /** The error of an authenticator that cannot identify the caller. */
  away = false;

  override authenticate(request: CredentialSource): Promise<Agent> {
    this.seen.push(request);
    const key = request.headers['x-mcp-api-key'] ?? 'ada';
    if (this.away) return Promise.reject(new AuthenticationUnavailable('the issuer is away'));
    if (key === 'wrong' || this.takenBack.has(key)) return Promise.reject(new Unauthorized('no such key'));
    if (key === 'broken') return Promise.reject(new Error('the key store at db.internal is down'));
    const [principal = '', agent] = String(key).split(' as ');
    const definition = agent === undefined ? DEFINITION : compileAgentDefinition(agent);
    return Promise.resolve(new Agent({ definition, principal }));
  }
}

type Work = (context: McpRequest, args: unknown) => unknown;

/**
 * Tools that return what they receive: `echo` its arguments, `whoami` its context, `wait` when it is released, `work` what a
 * test defines. `limited` does the same and refuses until later.
 */
export class EdgeTools extends ToolRunner {
  readonly contexts: McpRequest[] = [];
  /** What `work` does; its result is the data. */
  work: Work = () => ({});
  private readonly waiting: (() => void)[] = [];
  private readonly tools = [
    smallTool('echo', { outputSchema: { type: 'object' } }),
    smallTool('whoami'),
    smallTool('wait'),
    smallTool('work'),
    smallTool('limited'),
    smallTool('regional', {
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
        required: [],
      },
    }),
  ];

  list(): readonly ToolDefinition[] {
    return this.tools;
  }

  find(name: string): ToolDefinition | undefined {
    return this.tools.find((known) => known.name === name);
  }

  async run(name: string, args: unknown, context: McpRequest): Promise<ToolOutcome> {
    this.contexts.push(context);
    if (!this.find(name)) return { ok: false, refusal: refusals.unknownTool(name, 'readonly', []) };
    if (name === 'limited') {
      await this.work(context as McpRequest, args);
      return { ok: false, refusal: refusals.rateLimited(60, 60, 12) };
    }
    if (name === 'wait') await this.untilReleased(context.signal);
    const { agent, correlationId } = context;
    const whoami = { principal: agent.principal, correlationId };
    const data =
      name === 'work' ? await this.work(context as McpRequest, args) : name === 'whoami' ? whoami : args;
    return { ok: true, data, text: JSON.stringify(data), structured: name === 'echo' };
  }

  release(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  private untilReleased(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/** No file is served. */
export class NoFiles extends Downloads {
  open(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  revoke(): Promise<boolean> {
    return Promise.resolve(false);
  }
}
