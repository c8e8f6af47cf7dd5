import { type DynamicModule, Logger, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#state';
import { AgentScopes, Policies, type ReportBindingIssues } from '#policy';
import {
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
import { PrincipalDirectory } from './identity/principal-directory.js';
import { PrincipalResolver } from './identity/principal-resolver.js';
import { DatabaseTurns } from './metering/metered-stores.js';
import { StoredWriteKeys } from './stored-write-keys.js';
import { WriteKeys } from './write-keys.js';

/**
 * Logs which classes are refused because their rules do not match their fields: one line for each mistake as long as it
 * exists, and one line when all rules match again.
 */
function bindingIssuesReport(): ReportBindingIssues {
  const log = new Logger('Policy');
  let logged = '';
  return (issues) => {
    const lines = issues.map(
      ({ className, path, message }) => `class '${className}' is refused to agents: ${path}: ${message}`,
    );
    if (lines.join() === logged) return;
    logged = lines.join();
    for (const line of lines) log.warn(line);
    if (lines.length === 0) log.warn('every class fits its rules again');
  };
}

/** Governed access to rows over the ports that an adapter provides: all reads and writes for an agent use it. */
@Module({})
export class DataModule {
  /**
   * @param turns how the database is shared among principals
   * @param imports provide the ports to data, the policies and the shared state
   */
  static register(turns: DatabaseTurns, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: DataModule,
      imports: [...(imports ?? [])],
      providers: [
        {
          provide: PrincipalResolver,
          useFactory: (directory: PrincipalDirectory, policies: Policies) =>
            new PrincipalResolver(directory, (agent) => policies.of(agent).switches.strictRole),
          inject: [PrincipalDirectory, Policies],
        },
        {
          provide: AgentScopes,
          useFactory: (policies: Policies) => new AgentScopes(policies, bindingIssuesReport()),
          inject: [Policies],
        },
        { provide: DatabaseTurns, useValue: turns },
        {
          provide: WriteKeys,
          useFactory: (shared: SharedState) => new StoredWriteKeys(shared),
          inject: [SharedState],
        },
        GovernedRecordsSource,
        GovernedSearchSource,
        GovernedWritesSource,
      ],
      exports: [PrincipalResolver, GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource],
    };
  }
}
