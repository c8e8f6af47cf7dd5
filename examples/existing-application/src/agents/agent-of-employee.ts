import type { AgentChooser } from '@parley/server';
import type { Sessions } from '../staff/sessions.js';

/** An agent reads what the employee may read whose session it shows: their rows, their branch. */
export function agentOfEmployee(sessions: Sessions): AgentChooser {
  return async ({ headers }) => {
    const employee = await sessions.employeeOf(headers.authorization);
    return (
      employee && {
        agent: employee.role === 'manager' ? 'manager' : 'employee',
        principal: employee.id,
        identity: { user: employee.id },
        tenantId: employee.branch,
      }
    );
  };
}
