import type { INestApplicationContext } from '@nestjs/common';
import { PrincipalDirectory, SchemaCatalogue, type SessionOwner } from '#data';
import type { EnvironmentGates } from '#policy';
import { ToolEnvironment, ToolRegistry } from '#tools';
import { ConfigVersions } from '#config';
import { openRehearsalRoom, type RehearsalRoom } from './rehearsal-room.js';
import { rehearsedIdentity, RehearsingDirectory } from './rehearsing-directory.js';

/** Sessions as they are, and besides them those that stand for the callers of an agent which reads with its caller's. */
class InstanceDirectory extends RehearsingDirectory {
  constructor(
    private readonly instance: PrincipalDirectory,
    private readonly stand: ReadonlySet<string>,
  ) {
    super(instance);
  }

  override async ownerOfSession(token: string): Promise<SessionOwner | null> {
    const owner = await this.instance.ownerOfSession(token);
    return owner ?? (this.stand.has(token) ? super.ownerOfSession(token) : null);
  }
}

/** A room beside an instance that runs: its edition, gates, tools, schema and roles as they are at this moment. */
export function rehearseInstance(context: INestApplicationContext): Promise<RehearsalRoom> {
  const tools = context.get<ToolRegistry>(ToolRegistry).all();
  const { current } = context.get(ConfigVersions);
  const stand = [...current.identities.values()].map((own) => rehearsedIdentity(own));
  const tokens = stand.flatMap((identity) => (identity?.kind === 'sessionToken' ? [identity.token] : []));
  return openRehearsalRoom(current, {
    gates: context.get<EnvironmentGates>(ToolEnvironment),
    schemas: context.get<SchemaCatalogue>(SchemaCatalogue),
    directory: new InstanceDirectory(context.get<PrincipalDirectory>(PrincipalDirectory), new Set(tokens)),
    tools: tools.filter(({ builtIn }) => !builtIn).map(({ definition }) => ({ definition, override: true })),
  });
}
