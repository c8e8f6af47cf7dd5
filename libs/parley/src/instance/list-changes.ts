import { setImmediate } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { concatMap, filter, from, map, merge, type Observable, share, startWith } from 'rxjs';
import { Agent, type AgentDefinition } from '#core';
import { ConfigVersions, type VersionChange } from '#config';
import { SchemaCatalogue } from '#data';
import { PromptRegistry } from '#dispatcher';
import type { SchemaSnapshot } from '#policy';
import { type ChangingList, Wire } from '#streaming';
import { PermittedTools, ToolRegistry } from '#tools';

/** Notifies clients of changes of tools and prompts from now on. Call it after those of the start are registered. */
export function followLists(app: INestApplicationContext): void {
  const prompts = app.get(PromptRegistry);
  const tools = app.get(PermittedTools);
  const versions = app.get(ConfigVersions);
  const ofVersions = versions.changes.pipe(
    concatMap((change) => changesTools(change, tools).catch(() => true)),
    filter((differs) => differs),
  );
  const schemas = app.get(SchemaCatalogue);
  const ofClasses = changesOfClasses(
    { first: schemas.snapshotNow(), renewals: schemas.renewals },
    () => [...versions.current.agents.values()],
    tools,
  );
  app
    .get(Wire)
    .listChanges.follow(
      merge(
        merge(app.get(ToolRegistry).changes, ofVersions, ofClasses).pipe(map((): ChangingList => 'tools')),
        prompts.changes.pipe(map((): ChangingList => 'prompts')),
      ),
    );
}

/** Whether the tool list of any agent differs under the new version. */
async function changesTools({ before, now }: VersionChange, tools: PermittedTools): Promise<boolean> {
  for (const name of new Set([...before.agents.keys(), ...now.agents.keys()])) {
    const [then, since] = [before.agents.get(name), now.agents.get(name)];
    if ((await listShownTo(then, tools)) !== (await listShownTo(since, tools))) return true;
  }
  return false;
}

/**
 * Emits when classes of the database change so that lists of tools do: at once at other classes or permissions, whose effect on
 * users and roles is not known here, and where the list of a configured agent differs, once the lists were compared. The first
 * snapshot only counts as known: the one that the start read, which clients may have been shown, or else the first renewal.
 */
export function changesOfClasses(
  {
    first,
    renewals,
  }: { readonly first: SchemaSnapshot | null; readonly renewals: Observable<SchemaSnapshot> },
  agents: () => readonly AgentDefinition[],
  tools: PermittedTools,
): Observable<unknown> {
  let known: { readonly columns: string; readonly access: string } | null = null;
  let lists: string | null = null;
  /** Whether another snapshot is a change, as far as it is known without the lists; null: they decide. */
  const judge = (snapshot: SchemaSnapshot): boolean | null => {
    const columns = describeColumns(snapshot);
    if (known?.columns === columns) return false;
    const access = describeAccess(snapshot);
    const isOther = known !== null && known.access !== access;
    known = { columns, access };
    return isOther || null;
  };
  const compare = async (): Promise<boolean> => {
    const before = lists;
    lists = await listShownToAll(agents(), tools);
    return before !== null && before !== lists;
  };
  const judged = renewals.pipe(startWith(...(first ? [first] : [])), map(judge), share());
  // A comparison that fails is no reason to keep clients uninformed.
  const compared = judged.pipe(
    filter((verdict) => verdict !== false),
    concatMap((verdict) =>
      from(compare().catch(() => true)).pipe(filter((differs) => differs && verdict === null)),
    ),
  );
  // The comparison is subscribed first, because it alone needs the first snapshot.
  return merge(compared, judged.pipe(filter((verdict) => verdict === true)));
}

const listClasses = (snapshot: SchemaSnapshot) =>
  snapshot.classNames().flatMap((name) => snapshot.get(name) ?? []);

function describeAccess(snapshot: SchemaSnapshot): string {
  return JSON.stringify(
    listClasses(snapshot).map(({ className, classLevelPermissions }) => [className, classLevelPermissions]),
  );
}

/** Everything of the classes that a list of tools may depend on. */
function describeColumns(snapshot: SchemaSnapshot): string {
  return JSON.stringify(
    listClasses(snapshot).map(({ className, classLevelPermissions, fields }) => [
      className,
      classLevelPermissions,
      [...fields].map(([name, { type, targetClass }]) => [name, type, targetClass]),
    ]),
  );
}

/** One agent after another, with calls between them: a thousand classes take some 0.1 s of CPU for each. */
async function listShownToAll(agents: readonly AgentDefinition[], tools: PermittedTools): Promise<string> {
  const lists: string[] = [];
  for (const definition of agents) {
    lists.push(await listShownTo(definition, tools));
    await setImmediate();
  }
  return lists.join();
}

/** The tools of an agent of that definition with the classes that they name; empty without a definition. */
async function listShownTo(definition: AgentDefinition | undefined, tools: PermittedTools): Promise<string> {
  if (!definition) return '';
  const listed = await tools.listTools({ agent: new Agent({ definition, principal: 'nobody' }) });
  return JSON.stringify(
    listed.map(({ name, inputSchema }) => [
      name,
      (inputSchema['properties'] as { readonly class_name?: unknown } | undefined)?.class_name,
    ]),
  );
}
