import { type DynamicModule, Injectable, Logger, Module, type ModuleMetadata } from '@nestjs/common';
import { SharedState } from '#state';
import { AgentScopes, Policies, type ReportBindingIssues } from '#policy';
import { ClassUsesSource } from './governed/class-uses.js';
import {
  GovernedRecordsSource,
  GovernedSearchSource,
  GovernedWritesSource,
} from './governed/governed-sources.js';
import { PrincipalDirectory } from './identity/principal-directory.js';
import { PrincipalResolver } from './identity/principal-resolver.js';
import { DatabaseTurns } from './metering/metered-stores.js';
import { StoredWriteKeys, WriteKeys } from './write-keys.js';

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

/** Reads roles as strictly as the policy of the agent says. */
@Injectable()
class PolicyPrincipalResolver extends PrincipalResolver {
  constructor(directory: PrincipalDirectory, policies: Policies) {
    super(directory, (agent) => policies.of(agent).switches.strictRole);
  }
}

@Injectable()
class ReportedAgentScopes extends AgentScopes {
  constructor(policies: Policies) {
    super(policies, bindingIssuesReport());
  }
}

@Injectable()
class SharedWriteKeys extends StoredWriteKeys {
  constructor(shared: SharedState) {
    super(shared);
  }
}

/** Governed access to rows over the ports that an adapter provides: all reads and writes for an agent use it. */
@Module({
  providers: [
    { provide: PrincipalResolver, useClass: PolicyPrincipalResolver },
    { provide: AgentScopes, useClass: ReportedAgentScopes },
    { provide: WriteKeys, useClass: SharedWriteKeys },
    GovernedRecordsSource,
    GovernedSearchSource,
    GovernedWritesSource,
    ClassUsesSource,
  ],
  exports: [
    PrincipalResolver,
    GovernedRecordsSource,
    GovernedSearchSource,
    GovernedWritesSource,
    ClassUsesSource,
  ],
})
export class DataModule {
  /**
   * @param turns how the database is shared among principals
   * @param imports provide the ports to data, the policies and the shared state
   */
  static register(turns: DatabaseTurns, imports: ModuleMetadata['imports']): DynamicModule {
    return {
      module: DataModule,
      imports: [...(imports ?? [])],
      providers: [{ provide: DatabaseTurns, useValue: turns }],
    };
  }
}
