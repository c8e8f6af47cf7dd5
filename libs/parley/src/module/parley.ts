import { Inject, type INestApplicationContext, type Type } from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import {
  type Agent,
  type AgentDefinition,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  type CodeCaller,
} from '#core';
import {
  assertNamesOf,
  type CodeConversationOptions,
  Conversations,
  Readiness,
  type ReadyState,
  simulateInstance,
  type SimulatedInstance,
  UngovernedData,
} from '../instance/index.js';
import { OperationLog } from '#audit';
import { OperatorChanges } from '#changes';
import { SessionStreams } from '#state';
import {
  Impersonation,
  PrincipalResolver,
  ReadStore,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaWriter,
  SearchStore,
  WriteStore,
} from '#data';
import {
  AgentIntrospection,
  Kernel,
  MetadataAudit,
  PromptRegistry,
  ResourceRegistry,
  SubAgents,
  ToolCallbacks,
} from '#dispatcher';
import type { Conversation } from '#chat';
import { AgentOptionsError, assertChoiceOfLimits, ConfigVersions } from '#config';
import { ToolRegistry, ToolRunner } from '#tools';
import { type AgentChoice, agentWithin, chosenAgent, type CodeChoice } from './agent-choice.js';
import { type AnsweredMessage, answerMessage, type MessageOptions } from './answer-message.js';
import { startInside } from './inner-start.js';
import { openListener, type StandaloneListener, type StandaloneOptions } from './standalone-listener.js';

/** Providers without a policy, and providers that return them. */
const PAST_THE_POLICY: readonly unknown[] = [
  ReadStore,
  SearchStore,
  WriteStore,
  RecordReader,
  RecordWriter,
  RecordSearcher,
  SchemaWriter,
  ModuleRef,
  ModulesContainer,
];

/** One instance of Parley in an application. */
export class Parley {
  private readonly adHoc = new WeakMap<AgentDefinitionOptions, AgentDefinition>();
  private readonly listeners = new Set<StandaloneListener>();

  /** @internal Made by the module. */
  constructor(
    /** The name of the instance. */
    readonly name: string,
    private readonly context: INestApplicationContext,
    private readonly environment: Readonly<Record<string, string | undefined>> = process.env,
  ) {}

  /** Answers MCP messages in process, for transports that implement a protocol revision themselves; see `handle`. */
  get kernel(): Kernel {
    return this.context.get(Kernel);
  }

  /** Its tools, which may change at run time. */
  get tools(): ToolRegistry {
    return this.context.get(ToolRegistry);
  }

  /** Its prompts. */
  get prompts(): PromptRegistry {
    return this.context.get(PromptRegistry);
  }

  /** Its resources. */
  get resources(): ResourceRegistry {
    return this.context.get(ResourceRegistry);
  }

  /** Calls any tool through every gate. */
  get runner(): ToolRunner {
    return this.context.get(ToolRunner);
  }

  /** Creates agents with fewer rights. */
  get subAgents(): SubAgents {
    return this.context.get(SubAgents);
  }

  /** What an agent may do and why not, for operators. */
  get introspection(): AgentIntrospection {
    return this.context.get(AgentIntrospection);
  }

  /** Compares the policy with the schema of the database. */
  get metadataAudit(): MetadataAudit {
    return this.context.get(MetadataAudit);
  }

  /** The latest calls of this process. */
  get operationLog(): OperationLog {
    return this.context.get(OperationLog);
  }

  /** Impersonation of a user by a session of that user. */
  get impersonation(): Impersonation {
    return this.context.get(Impersonation);
  }

  /** The current rights of users, roles and sessions in the database. */
  get principals(): PrincipalResolver {
    return this.context.get(PrincipalResolver);
  }

  /** Change sets, as operators see and take them back. Every call names the agent as which it is made. */
  get changes(): OperatorChanges {
    return this.context.get(OperatorChanges);
  }

  /** Functions that are called before and after tools, and for errors. */
  get callbacks(): ToolCallbacks {
    return this.context.get(ToolCallbacks);
  }

  /**
   * Answers one JSON-RPC message of MCP as an agent, through every gate, without HTTP.
   * @param body the parsed message
   * @returns the envelope of the answer and its HTTP status; never rejects
   */
  handle(body: unknown, agent: Agent, options: MessageOptions = {}): Promise<AnsweredMessage> {
    return answerMessage(this.kernel, body, agent, options);
  }

  /**
   * Sends a JSON-RPC notification to the listening stream of a session, on any replica. The session owner must be
   * allowed to read the content: no gate checks it.
   * @param session the `Mcp-Session-Id`; of a running call `call.sessionId`
   * @param method not empty: `notifications/…`
   * @returns whether a stream received it; without one it is dropped
   * @throws TypeError for a method that is no text
   */
  async notify(
    session: string,
    method: string,
    params?: Readonly<Record<string, unknown>>,
  ): Promise<boolean> {
    if (typeof session !== 'string' || session === '')
      throw new TypeError('session: expected the id of a session');
    return this.context.get(SessionStreams).notify(session, { method, ...(params && { params }) });
  }

  /**
   * Opens a conversation with a language model that uses the tools of an agent (docs/guide/chat.md#from-code). Every
   * call passes every gate and leaves its record.
   * @param caller an agent, or the call of a tool: the conversation then ends with it
   * @throws ModelSettingsError when these settings, `llm` and the environment select no usable model
   */
  converse(caller: CodeCaller, options: CodeConversationOptions = {}): Conversation {
    return this.context.get(Conversations).open(caller, options);
  }

  /**
   * Opens a separate port for this instance; mounting in the application needs none. It closes with the application.
   * @throws ConfigError without `standalone: true` and `PARSE_MCP_ENABLED=true`, for an address that needs credentials,
   * and for a port that is taken
   */
  async listen(options: StandaloneOptions): Promise<StandaloneListener> {
    const { config } = this.context.get(ConfigVersions).current;
    const opened = await openListener(this.context, config, this.environment, options);
    const listener: StandaloneListener = {
      url: opened.url,
      close: async () => {
        this.listeners.delete(listener);
        await opened.close();
      },
    };
    this.listeners.add(listener);
    return listener;
  }

  /** @internal Closes them with the application. */
  async closeListeners(): Promise<void> {
    await Promise.all([...this.listeners].map((listener) => listener.close()));
  }

  /**
   * The agent of a request with this choice: to call tools from code (`runner`, `kernel`). The options of an agent pass
   * the checks of the configuration file; unresolved names of tools and classes are errors where names are strict, and
   * warnings otherwise.
   * @throws AgentOptionsError, a TypeError, listing unknown options and invalid values
   * @throws TypeError for an invalid choice
   */
  agentFor(choice: CodeChoice): Agent {
    const given: unknown = choice;
    if (isNamed(given)) return chosenAgent(this.context.get(ConfigVersions), given, 'agentFor');
    assertChoiceOfLimits('agentFor', choice);
    const { agent, ...as } = choice as Omit<CodeChoice, 'agent'> & { readonly agent: AgentDefinitionOptions };
    const definition = this.adHoc.get(agent) ?? this.compiled(agent);
    this.adHoc.set(agent, definition);
    return agentWithin(definition, as);
  }

  private compiled(options: AgentDefinitionOptions): AgentDefinition {
    const versions = this.context.get(ConfigVersions);
    const { parse } = versions.current.config;
    // Without a master key an agent of code has none either, whatever its options say.
    const isKeyless = parse.serverUrl !== null && parse.masterKey === null;
    if (isKeyless && options.clientMode === false)
      throw new AgentOptionsError('agentFor', [
        { path: 'agent.clientMode', message: 'cannot be false without parse.masterKey' },
      ]);
    const compiled = compileAgentDefinition('ad hoc', isKeyless ? { ...options, clientMode: true } : options);
    const definition = versions.withinPolicy(compiled);
    assertNamesOf(definition, this.context);
    return definition;
  }

  /**
   * A simulation in which calls are explained as by `parley explain`: through every gate, up to the store. It uses the
   * current configuration, tools, schema and roles. The caller must close it.
   */
  openSimulation(): Promise<SimulatedInstance> {
    return startInside(() => simulateInstance(this.context));
  }

  /** Whether the instance accepts calls, and the state of its dependencies. */
  readiness(): Promise<ReadyState> {
    return this.context.get(Readiness).look();
  }

  /** Rows without policy, under a name that the options list in `ungoverned`. */
  get ungoverned(): UngovernedData {
    return this.context.get(UngovernedData);
  }

  /**
   * Any other provider of it, by its class.
   * @throws TypeError for the ports to rows: a call has governed access, and only `ungoverned` bypasses the policy
   */
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T)): T {
    if (PAST_THE_POLICY.includes(token))
      throw new TypeError(`${token.name} knows no policy and is not handed out: see Parley.ungoverned`);
    return this.context.get<T>(token as Type<T>);
  }
}

const isNamed = (choice: unknown): choice is AgentChoice =>
  typeof choice === 'object' && choice !== null && typeof (choice as AgentChoice).agent === 'string';

/** Token of a named instance; the token of `default` is `Parley` itself. */
export function getParleyToken(name = 'default'): typeof Parley | string {
  return name === 'default' ? Parley : `parley:${name}`;
}

/**
 * Injects an instance by its name, instead of `@Inject(getParleyToken(name))`:
 * `constructor(@InjectParley('billing') private readonly parley: Parley) {}`
 * @param name default `default`
 */
export function InjectParley(name = 'default'): PropertyDecorator & ParameterDecorator {
  return Inject(getParleyToken(name));
}
