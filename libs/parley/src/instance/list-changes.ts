import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { concatMap, filter, from, map, merge, type Observable, share, startWith } from 'rxjs';
import { Agent, type AgentDefinition } from '#core';
import { ConfigVersions } from '#config';
import { describeClasses, SchemaCatalogue } from '#data';
import { PromptRegistry, RenderedLists } from '#dispatcher';
import type { SchemaSnapshot } from '#policy';
import { type ChangingList, Wire } from '#streaming';
import { PermittedTools, ToolRegistry } from '#tools';

/** Notifies clients of changes of tools and prompts from now on. Call it after those of the start are registered. */
export function followLists(app: INestApplicationContext): void {
  const prompts = app.get(PromptRegistry);
  const versions = app.get(ConfigVersions);
  const lists = new AskedLists(() => versions.current.agents, app.get(PermittedTools));
  app.get(RenderedLists).newAskers.subscribe((definition) => void lists.add(definition));
  const ofVersions = versions.changes.pipe(
    concatMap(() => lists.compare()),
    filter((differs) => differs),
  );
  const schemas = app.get(SchemaCatalogue);
  const ofClasses = changesOfClasses({ first: schemas.snapshotNow(), renewals: schemas.renewals }, lists);
  app
    .get(Wire)
    .listChanges.announce(
      merge(
        merge(app.get(ToolRegistry).changes, ofVersions, ofClasses).pipe(map((): ChangingList => 'tools')),
        prompts.changes.pipe(map((): ChangingList => 'prompts')),
      ),
      schemas.tenantChanges,
    );
}

/** The tools of the configured agents for which a client asked: of the others nobody has a list that could change. */
export class AskedLists {
  /** By the name of the agent, digests: a list names every class. */
  private readonly known = new Map<string, string>();

  constructor(
    private readonly agents: () => ReadonlyMap<string, AgentDefinition>,
    private readonly tools: PermittedTools,
  ) {}

  async add(definition: AgentDefinition): Promise<void> {
    const { name } = definition;
    if (this.known.has(name) || this.agents().get(name) !== definition) return;
    // What is compared before it is known counts as another list.
    this.known.set(name, '');
    this.known.set(name, await this.digest(definition).catch(() => ''));
  }

  /**
   * Whether one of them differs from what it was. An agent that is gone, or whose list cannot be read, counts: it is no reason
   * to keep clients uninformed. One after another, with calls between them: a thousand classes take some 0.1 s of CPU for each.
   */
  async compare(): Promise<boolean> {
    let differs = false;
    for (const [name, before] of this.known) {
      const definition = this.agents().get(name);
      if (definition) this.known.set(name, await this.digest(definition).catch(() => ''));
      else this.known.delete(name);
      const now = this.known.get(name);
      if (now !== before || now === '') differs = true;
      await setImmediate();
    }
    return differs;
  }

  /** Of the tools of an agent of that definition with the classes that they name. */
  private async digest(definition: AgentDefinition): Promise<string> {
    const listed = await this.tools.listTools({ agent: new Agent({ definition, principal: 'nobody' }) });
    const digest = createHash('sha256');
    for (const { name, inputSchema } of listed) {
      const { class_name } = (inputSchema['properties'] ?? {}) as { readonly class_name?: unknown };
      digest.update(JSON.stringify([name, class_name]));
    }
    return digest.digest('base64');
  }
}

/**
 * Emits when classes of the database change so that lists of tools do: at once at other classes or permissions, whose effect on
 * users and roles is not known here, and otherwise where a list differs, once the lists were compared.
 * @param classes `first`: the snapshot that the start read, which clients may have been shown
 */
export function changesOfClasses(
  classes: { readonly first: SchemaSnapshot | null; readonly renewals: Observable<SchemaSnapshot> },
  lists: Pick<AskedLists, 'compare'>,
): Observable<unknown> {
  let known: { readonly columns: string; readonly access: string } | null = null;
  /** Whether another snapshot is a change, as far as it is known without the lists; null: they decide. */
  const judge = (snapshot: SchemaSnapshot): boolean | null => {
    const before = known;
    const columns = describeClasses(listClasses(snapshot));
    if (before?.columns === columns) return false;
    const access = describeAccess(snapshot);
    known = { columns, access };
    return (before !== null && before.access !== access) || null;
  };
  const { first, renewals } = classes;
  const judged = renewals.pipe(startWith(...(first ? [first] : [])), map(judge), share());
  const compared = judged.pipe(
    filter((verdict) => verdict !== false),
    concatMap((verdict) => from(lists.compare()).pipe(filter((differs) => differs && verdict === null))),
  );
  return merge(compared, judged.pipe(filter((verdict) => verdict === true)));
}

const listClasses = (snapshot: SchemaSnapshot) =>
  snapshot.classNames().flatMap((name) => snapshot.get(name) ?? []);

function describeAccess(snapshot: SchemaSnapshot): string {
  return JSON.stringify(
    listClasses(snapshot).map(({ className, classLevelPermissions }) => [className, classLevelPermissions]),
  );
}
