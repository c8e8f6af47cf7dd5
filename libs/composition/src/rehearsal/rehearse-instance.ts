import type { INestApplicationContext } from '@nestjs/common';
import { PrincipalDirectory, SchemaCatalogue } from '#data';
import type { EnvironmentGates } from '#policy';
import { ToolEnvironment, ToolRegistry } from '#tools';
import { Editions } from '../editions/editions.js';
import { openRehearsalRoom, type RehearsalRoom } from './rehearsal-room.js';

/** A room beside an instance that runs: its edition, gates, tools, schema and roles as they are at this moment. */
export function rehearseInstance(context: INestApplicationContext): Promise<RehearsalRoom> {
  const tools = context.get<ToolRegistry>(ToolRegistry).all();
  return openRehearsalRoom(context.get(Editions).current, {
    gates: context.get<EnvironmentGates>(ToolEnvironment),
    schemas: context.get<SchemaCatalogue>(SchemaCatalogue),
    directory: context.get<PrincipalDirectory>(PrincipalDirectory),
    tools: tools.filter(({ builtIn }) => !builtIn).map(({ definition }) => ({ definition, override: true })),
  });
}
