import { loadWithPlugins } from '#instance';
import { ChatLoop } from './chat-loop.js';
import { withConfig } from './named-config.js';
import { openAgent } from './open-agent.js';
import { preparedConversation } from './open-conversation.js';
import { PersonAtTerminal } from './terminal/person-at-terminal.js';
import { Terminal } from './terminal/terminal.js';

export interface ChatOptions {
  readonly agent?: string;
  readonly config?: string;
}

/**
 * Talks with whoever sits at the terminal until they leave.
 * @throws ModelSettingsError when no model can be asked, before anything is opened
 */
export async function runChat({ agent, config }: ChatOptions): Promise<void> {
  const env = withConfig(config);
  const loaded = await loadWithPlugins(env);
  const converse = preparedConversation(loaded.config, agent, env, (line) =>
    process.stderr.write(`${line}\n`),
  );
  const terminal = new Terminal();
  const person = new PersonAtTerminal(terminal);
  try {
    const opened = await openAgent(loaded, env, { agent, ...(terminal.isPerson && { person }) });
    try {
      const trace = env['MCP_CHAT_TRACE'] === 'true';
      await new ChatLoop({ terminal, person, agent: opened, conversation: converse(opened), trace }).run();
    } finally {
      await opened.close();
    }
  } finally {
    terminal.close();
  }
}
