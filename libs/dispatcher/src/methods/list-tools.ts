import { Injectable } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import type { AgentDefinition, McpRequest, JsonObject } from '#core';
import { type ToolDefinition, ToolRunner } from '#tools';
import { McpMethod, OF_AGENT, takePage } from './method.js';
import {
  type Dialect,
  showsViews,
  PreparedResult,
  invalidParams,
  ResultEnvelope,
  readDialect,
} from '../protocol.js';

/** Rendered data of one list of tools. */
export class CatalogueEntry {
  private index: ReadonlyMap<string, ToolDefinition> | null = null;
  private readonly bodies = {
    plain: new Map<Dialect, PreparedResult>(),
    views: new Map<Dialect, PreparedResult>(),
  };

  constructor(readonly tools: readonly ToolDefinition[]) {}

  find(name: string): ToolDefinition | undefined {
    this.index ??= new Map(this.tools.map((tool) => [tool.name, tool]));
    return this.index.get(name);
  }

  /** @param views whether the client shows views */
  body(
    dialect: Dialect,
    views: boolean,
    render: (tools: readonly ToolDefinition[]) => PreparedResult,
  ): PreparedResult {
    const bodies = this.bodies[views ? 'views' : 'plain'];
    let body = bodies.get(dialect);
    if (!body) {
      body = render(this.tools);
      bodies.set(dialect, body);
    }
    return body;
  }

  describes(tools: readonly ToolDefinition[]): boolean {
    if (tools === this.tools) return true;
    return tools.length === this.tools.length && tools.every((tool, at) => tool === this.tools[at]);
  }
}

/**
 * The tools that an agent may call. The runner decides again on every call; only the rendered form of its list is cached, by the
 * list itself.
 */
@Injectable()
export class RenderedLists {
  private readonly callable: Entries = new WeakMap();
  private readonly shown: Entries = new WeakMap();
  private readonly askers = new Subject<AgentDefinition>();

  constructor(private readonly runner: ToolRunner) {}

  /** Agents for which a client asks for the first time. */
  get newAskers(): Observable<AgentDefinition> {
    return this.askers;
  }

  /** Every tool that the agent may call. */
  for(context: McpRequest): CatalogueEntry {
    return entryOf(this.callable, context, this.runner.list(context));
  }

  /** Those that can work for it. */
  listTools(context: McpRequest): CatalogueEntry | Promise<CatalogueEntry> {
    const { definition } = context.agent;
    if (!this.shown.has(definition)) this.askers.next(definition);
    const tools = this.runner.listTools(context);
    return tools instanceof Promise
      ? tools.then((list) => entryOf(this.shown, context, list))
      : entryOf(this.shown, context, tools);
  }
}

/** Of one agent definition, the latest first: its callers may see different classes. */
type Entries = WeakMap<AgentDefinition, CatalogueEntry[]>;

/** Most lists that are kept of one agent definition. */
const MOST_LISTS = 8;

function entryOf(
  entries: Entries,
  { agent: { definition } }: McpRequest,
  tools: readonly ToolDefinition[],
): CatalogueEntry {
  let kept = entries.get(definition);
  if (!kept) entries.set(definition, (kept = []));
  const at = kept.findIndex((entry) => entry.describes(tools));
  if (at === 0) return kept[0] as CatalogueEntry;
  // A copy, so that a runner that changes its own list in place does not change the compared one.
  const entry = at < 0 ? new CatalogueEntry([...tools]) : (kept[at] as CatalogueEntry);
  kept.splice(at < 0 ? MOST_LISTS - 1 : at, 1);
  kept.unshift(entry);
  return entry;
}

type MethodAnswer = PreparedResult | JsonObject;

/** `tools/list`: the tools that this agent may call and that can work for it, and no others. */
@Injectable()
export class ListToolsMethod {
  constructor(
    private readonly catalogue: RenderedLists,
    private readonly envelope: ResultEnvelope,
  ) {}

  @McpMethod('tools/list', { cache: OF_AGENT })
  handle(params: JsonObject, request: McpRequest): MethodAnswer | Promise<MethodAnswer> {
    const entry = this.catalogue.listTools(request);
    return entry instanceof Promise
      ? entry.then((list) => this.answer(params, request, list))
      : this.answer(params, request, entry);
  }

  private answer(params: JsonObject, request: McpRequest, entry: CatalogueEntry): MethodAnswer {
    const dialect = readDialect(request);
    const views = showsViews(request, dialect);
    const page = (tools: readonly ToolDefinition[], list: string): JsonObject => {
      const describe = (tool: ToolDefinition) => describeTool(tool, dialect, views);
      const { entries, nextCursor } = takePage(list, tools, params, dialect);
      return { tools: entries.map(describe), ...(nextCursor !== undefined && { nextCursor }) };
    };
    const category = params.category ?? undefined;
    if (category === undefined && (params.cursor ?? undefined) === undefined) {
      return entry.body(
        dialect,
        views,
        (tools) => new PreparedResult(this.envelope.complete(dialect.era, page(tools, 'tools'), OF_AGENT)),
      );
    }
    if (category === undefined) return page(entry.tools, 'tools');
    if (typeof category !== 'string') throw invalidParams('category must be a string');
    const lowerCase = category.toLowerCase();
    const tools = entry.tools.filter((tool) => tool.category.toLowerCase() === lowerCase);
    return page(tools, `tools:${lowerCase}`);
  }
}

/** A tool in the format of one revision. @param views whether the client shows views */
export function describeTool(tool: ToolDefinition, dialect: Dialect, views = false): JsonObject {
  return {
    name: tool.name,
    ...(dialect.structured && tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: tool.inputSchema,
    ...(dialect.structured && tool.outputSchema !== undefined && { outputSchema: tool.outputSchema }),
    ...(dialect.annotations && tool.annotations !== undefined && { annotations: tool.annotations }),
    _meta: { category: tool.category, ...(views && viewMeta(tool)) },
  };
}

/** Hosts with an early version of the extension read the second name. */
function viewMeta({ view }: ToolDefinition): JsonObject {
  return view === undefined ? {} : { ui: { resourceUri: view }, 'ui/resourceUri': view };
}
