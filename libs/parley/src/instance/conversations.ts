import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Module } from '@nestjs/common';
import { type ClientLink, type CodeCaller, sanitizeCorrelationId, toRequest } from '#core';
import { Conversation, type ConversationOptions, KernelTools, type ModelSettings, openModel } from '#chat';
import { ConfigVersions, type Environment, findLlm, type LlmConfig } from '#config';
import { Kernel, KernelModule } from '#dispatcher';
import { ConfigurationModule } from './configuration.module.js';

/** Options of a conversation from code. */
export interface CodeConversationOptions extends ConversationOptions {
  /** Members that are left out are those of `llm` and of the variables `LLM_PROVIDER`, `LLM_MODEL`, `LLM_BASE_URL` and `LLM_API_KEY`. */
  readonly model?: Partial<ModelSettings>;
  /** The person who answers elicitations. Default: none, and calls that need an approval are refused. */
  readonly person?: ClientLink;
  /** Connects the audit records of the conversation. Default: that of the call, else of the agent, else a new one. */
  readonly correlationId?: string;
}

/** Injection token of the environment of the process. */
export const CONVERSATION_ENVIRONMENT = Symbol('environment of conversations');

const NO_PROVIDER = { model: null, endpoint: null, apiKey: null };

/** Settings that name no provider are those of whichever is chosen. */
const isOtherProvider = (settings: { readonly provider: string | null }, chosen: string | null): boolean =>
  settings.provider !== null && chosen?.toLowerCase() !== settings.provider.toLowerCase();

/** The settings of an agent's model, overridden by the environment. A key of one provider is never sent to another. */
export function readModelSettings(
  llm: LlmConfig,
  env: Environment,
): Omit<LlmConfig, 'provider'> & { readonly provider: string | null } {
  const readVariable = (name: string) => env[name] || undefined;
  const provider = readVariable('LLM_PROVIDER') ?? llm.provider;
  const { model, endpoint, apiKey } = isOtherProvider(llm, provider) ? NO_PROVIDER : llm;
  return {
    ...llm,
    provider,
    model: readVariable('LLM_MODEL') ?? model,
    endpoint: readVariable('LLM_BASE_URL') ?? readVariable('LLM_ENDPOINT') ?? endpoint,
    apiKey: readVariable('LLM_API_KEY') ?? apiKey,
  };
}

/** Settings with what code gives of them. A key of one provider is never sent to another. */
export function withGiven(configured: ModelSettings, given: Partial<ModelSettings> = {}): ModelSettings {
  const written = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const { provider } = given;
  return typeof provider === 'string' && isOtherProvider(configured, provider)
    ? { ...(written as Partial<ModelSettings>), provider }
    : { ...configured, ...written };
}

/** Conversations of agents with a language model, for tools, plugins and applications (docs/guide/chat.md#from-code). */
@Injectable()
export class Conversations {
  /** @internal Made by the module. */
  constructor(
    private readonly kernel: Kernel,
    private readonly versions: ConfigVersions,
    @Inject(CONVERSATION_ENVIRONMENT) private readonly environment: Environment,
  ) {}

  /**
   * Opens a conversation in which the model calls the tools of an agent, through every gate and with its records. Within a call,
   * it ends with that call, reports its tools as progress, and its records have the ids of that call.
   * @throws ModelSettingsError when these settings select no usable model
   */
  open(caller: CodeCaller, options: CodeConversationOptions = {}): Conversation {
    const request = toRequest(caller);
    const { agent } = request;
    const { model, person, correlationId, ...others } = options;
    const settings = this.settingsFor(agent.definition.name, model);
    const tools = new KernelTools({
      kernel: this.kernel,
      agent: () => Promise.resolve(agent),
      correlationId:
        sanitizeCorrelationId(correlationId) ?? request.correlationId ?? agent.correlationId ?? randomUUID(),
      httpRequestId: request.httpRequestId,
      ...(person && { person }),
      onCall: (name, number) => request.progress({ progress: number, message: name }),
    });
    return new Conversation(openModel(settings), tools, {
      permissions: agent.permissions,
      signal: request.signal,
      ...others,
    });
  }

  private settingsFor(agent: string, given?: Partial<ModelSettings>): ModelSettings {
    const llm = findLlm(this.versions.current.config, agent);
    return withGiven(readModelSettings(llm, this.environment), given);
  }
}

/** Opens conversations. */
@Module({
  imports: [KernelModule, ConfigurationModule],
  providers: [Conversations],
  exports: [Conversations],
})
export class ConversationsModule {}
