import { Injectable } from '@nestjs/common';
import { AgentDescription, AgentFields, AgentTenantScope, ParseClass } from '@parley/server';

/** What agents may know of repairs. The column `margin` is not among it. */
@ParseClass('Repair')
@AgentDescription('Bicycles that were brought in')
@AgentFields('bicycle', 'status', 'hours', 'due')
@AgentTenantScope('branch')
@Injectable()
export class RepairRules {}
