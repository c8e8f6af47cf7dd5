import { type AgentSurface, type SurfaceChange, surfaceChanges, surfaceOf, widens } from '#dispatcher';
import { type LoadedService, loadWithPlugins } from '#instance';
import { withConfig } from './named-config.js';
import { DeclaredSchemas } from './declared-schemas.js';
import { describeChanges } from './describe-changes.js';
import { openRehearsal } from './rehearsal-room.js';

export interface DiffOptions {
  readonly json?: boolean;
  readonly failOnWidening?: boolean;
}

/** Tells who gains and who loses what between two configurations, by asking the code that decides about both. */
export async function runPolicyDiff(before: string, after: string, options: DiffOptions): Promise<void> {
  const configs: { file: string; loaded: LoadedService }[] = [];
  for (const file of [before, after]) configs.push({ file, loaded: await loadWithPlugins(withConfig(file)) });
  const surfaces: ReadonlyMap<string, AgentSurface>[] = [];
  for (const { file, loaded } of configs) {
    surfaces.push(
      await surfacesOf(
        loaded,
        file,
        configs.map((config) => config.loaded),
      ),
    );
  }
  const [old = new Map(), now = new Map()] = surfaces;
  const changes: SurfaceChange[] = surfaceChanges(old, now);
  const widening = changes.some(widens);
  process.stdout.write(
    options.json ? `${JSON.stringify({ widens: widening, changes }, null, 2)}\n` : describeChanges(changes),
  );
  if (options.failOnWidening && widening) process.exitCode = 1;
}

async function surfacesOf(
  loaded: LoadedService,
  file: string,
  compared: readonly LoadedService[],
): Promise<Map<string, AgentSurface>> {
  let schemas: DeclaredSchemas | undefined;
  const room = await openRehearsal(loaded, withConfig(file), {
    schemas: (read) => {
      schemas = new DeclaredSchemas(read, compared);
      return schemas;
    },
  });
  try {
    const classNames = (await schemas?.snapshot())?.classNames() ?? [];
    const surfaces = new Map<string, AgentSurface>();
    for (const [name, agent] of room.agents) surfaces.set(name, await surfaceOf(room, agent, classNames));
    return surfaces;
  } finally {
    await room.close();
  }
}
