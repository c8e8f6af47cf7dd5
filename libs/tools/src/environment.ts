import type { EnvironmentGates } from '#policy';

/** What the process environment opened, for tools that ask about more than their own name. */
export abstract class ToolEnvironment implements EnvironmentGates {
  abstract readonly PARSE_AGENT_ALLOW_WRITE_TOOLS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_SCHEMA_OPS: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_CRUD: boolean;
  abstract readonly PARSE_AGENT_ALLOW_RAW_SCHEMA: boolean;
}
