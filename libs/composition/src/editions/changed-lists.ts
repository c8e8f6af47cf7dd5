import { Agent, type AgentShape } from '#agent';
import type { PermittedTools } from '#tools';
import type { Succession } from './editions.js';

/** What an agent of that name is shown; nothing when there is none. */
function shownTo(shape: AgentShape | undefined, tools: PermittedTools): string {
  if (!shape) return '';
  const agent = new Agent({ shape, principal: 'nobody' });
  return JSON.stringify(tools.list({ agent }).map(({ name }) => name));
}

/** Whether somebody's list of tools is another one under the new edition. */
export function changesTools({ before, now }: Succession, tools: PermittedTools): boolean {
  const names = new Set([...before.agents.keys(), ...now.agents.keys()]);
  return [...names].some(
    (name) => shownTo(before.agents.get(name), tools) !== shownTo(now.agents.get(name), tools),
  );
}
