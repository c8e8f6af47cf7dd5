import type { AskedService, Request } from './asked-service.js';
import { CLASS_NAMES, type ClassName, columnNames, TENANT_COLUMN } from './vocabulary.js';
import { AgentSight } from './sight.js';
import type { World } from './world.js';

/** What a listing says beside what calls say. They must be equal. */
export interface Comparison {
  readonly what: string;
  readonly listed: readonly string[];
  readonly permitted: readonly string[];
}

type Json = Record<string, unknown>;

interface Outcome {
  readonly code: string;
  readonly data: Json;
}

const KINDS = ['schema', 'count', 'samples'] as const;
const CLASSES = [...CLASS_NAMES, '_Role', '_Session', '_JobStatus'];
/** Codes that mean: the tool is not for this agent, whatever it would be asked. */
const TOOL_REFUSED = new Set(['tool_filtered', 'permission_denied', 'access_denied']);
const NOT_FOR_AGENT = new Set(['access_denied', 'permission_denied', 'invalid_argument', 'tool_filtered']);

/** Asks one agent for every listing there is, and then for everything that could have been in it. */
export class ListedAndPermitted {
  constructor(
    private readonly service: AskedService,
    private readonly world: World,
  ) {}

  async all(toolNames: readonly string[]): Promise<Comparison[]> {
    const listed = await this.listedTools();
    const comparisons = [await this.tools(toolNames, listed)];
    if (listed.includes('list_tools')) comparisons.push(await this.listTools(listed));
    const canDescribe = listed.includes('get_schema');
    if (canDescribe && listed.includes('get_all_schemas')) comparisons.push(await this.classes());
    if (canDescribe) comparisons.push(await this.completedClasses());
    comparisons.push(await this.resources(listed.includes('get_all_schemas')));
    if (canDescribe && listed.includes('query_class'))
      for (const name of CLASS_NAMES) comparisons.push(...(await this.fields(name)));
    return comparisons;
  }

  private async listedTools(): Promise<string[]> {
    const { data } = await this.ask({ method: 'tools/list', params: {} });
    return (data['tools'] as { name: string }[]).map(({ name }) => name).sort();
  }

  private async tools(names: readonly string[], listed: readonly string[]): Promise<Comparison> {
    const permitted: string[] = [];
    for (const name of names) if (!TOOL_REFUSED.has((await this.call(name, {})).code)) permitted.push(name);
    return { what: 'tools/list', listed, permitted: permitted.sort() };
  }

  private async listTools(permitted: readonly string[]): Promise<Comparison> {
    const { data } = await this.call('list_tools', {});
    const named = JSON.stringify(data).matchAll(/"name":"(\w+)"/g);
    return { what: 'list_tools', listed: [...named].map(([, name]) => String(name)).sort(), permitted };
  }

  private async classes(): Promise<Comparison> {
    const { data } = await this.call('get_all_schemas', {});
    const groups = [data['custom'], data['built_in']] as { name: string }[][];
    const listed = groups.flat().map(({ name }) => name);
    return { what: 'get_all_schemas', listed: listed.sort(), permitted: await this.describable() };
  }

  private async completedClasses(): Promise<Comparison> {
    const listed = await this.completed(
      { type: 'ref/resource', uri: 'parse://{className}/schema' },
      'className',
    );
    return { what: 'completion of classes', listed, permitted: await this.describable() };
  }

  /** Without what may be named but never is: the exception for the master key. */
  private async describable(): Promise<string[]> {
    const found: string[] = [];
    const sight = new AgentSight(this.world);
    for (const name of CLASSES) {
      const unlisted =
        (CLASS_NAMES as readonly string[]).includes(name) && sight.isWithheld(name as ClassName);
      if (!unlisted && (await this.call('get_schema', { class_name: name })).code === '') found.push(name);
    }
    return found.sort();
  }

  private async resources(hasListing: boolean): Promise<Comparison> {
    const { data } = await this.ask({ method: 'resources/list', params: {} });
    const listed = (data['resources'] as { uri: string }[]).map(({ uri }) => uri).sort();
    const permitted: string[] = [];
    // Resources are of the classes that are listed: one that may be counted and nothing else is in no listing.
    for (const name of hasListing ? (await this.classes()).listed : []) {
      for (const kind of KINDS) {
        const uri = `parse://${name}/${kind}`;
        const { code } = await this.ask({ method: 'resources/read', params: { uri } });
        if (code === '') permitted.push(uri);
      }
    }
    return { what: 'resources/list', listed, permitted: permitted.sort() };
  }

  /** Of a class that can be described and searched: what schema and completion name is what a query may name. */
  private async fields(className: ClassName): Promise<Comparison[]> {
    const schema = await this.call('get_schema', { class_name: className });
    const searched = await this.call('query_class', { class_name: className, limit: 1 });
    if (schema.code !== '' || searched.code !== '') return [];
    const permitted: string[] = [];
    for (const name of columnNames(className)) {
      const { code } = await this.call('query_class', {
        class_name: className,
        where: { [name]: name === TENANT_COLUMN[className] ? this.world.agent.tenantId : { $exists: true } },
      });
      if (!NOT_FOR_AGENT.has(code)) permitted.push(name);
    }
    const own = new Set(columnNames(className));
    const known = (names: readonly string[]) => names.filter((name) => own.has(name)).sort();
    const described = (schema.data['fields'] as { name: string }[]).map(({ name }) => name);
    const comparisons = [
      { what: `get_schema of ${className}`, listed: known(described), permitted: permitted.sort() },
    ];
    if (new AgentSight(this.world).isWithheld(className)) return comparisons;
    const ref = { type: 'ref/prompt', name: 'count_by' };
    const completed = await this.completed(ref, 'group_by', { arguments: { class_name: className } });
    return [...comparisons, { what: `completion for ${className}`, listed: known(completed), permitted }];
  }

  private async completed(ref: Json, name: string, context?: Json): Promise<string[]> {
    const params = { ref, argument: { name, value: '' }, ...(context && { context }) };
    const { data } = await this.ask({ method: 'completion/complete', params });
    return [...(data['completion'] as { values: string[] }).values].sort();
  }

  private call(name: string, args: Json): Promise<Outcome> {
    return this.ask({ method: 'tools/call', params: { name, arguments: args } });
  }

  private async ask(request: Request): Promise<Outcome> {
    const { reply } = await this.service.ask(request);
    const data = JSON.parse(reply) as Json;
    const meta = data['_meta'] as Json | undefined;
    const code = meta?.['parse.error_code'] ?? (data['error'] ? 'error' : '');
    return { code: code as string, data: (data['structuredContent'] as Json | undefined) ?? data };
  }
}
