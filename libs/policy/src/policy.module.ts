import { Injectable, Logger, Module } from '@nestjs/common';
import { provideFromInstance } from '#core';
import { Policies } from './model/policy.js';
import { AgentScopes, type ReportBindingIssues } from './scope/agent-scope.js';

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

@Injectable()
class ReportedAgentScopes extends AgentScopes {
  constructor(policies: Policies) {
    super(policies, bindingIssuesReport());
  }
}

/** The policies of the served configuration versions, and what each agent may reach under them. */
@Module({
  providers: [provideFromInstance(Policies), { provide: AgentScopes, useClass: ReportedAgentScopes }],
  exports: [Policies, AgentScopes],
})
export class PolicyModule {}
