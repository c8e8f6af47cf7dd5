import { Controller, Get, UseGuards } from '@nestjs/common';
import { CurrentCall, ParleyGuard, RequirePermission, type ToolCall, UsesClass } from '@parley/server';

/** A route of the application under the rules of its agents: the same rows, limits and audit records as their tools. */
@Controller('repairs')
@UseGuards(ParleyGuard)
@RequirePermission('readonly')
@UsesClass('Repair')
export class RepairsController {
  @Get()
  async list(@CurrentCall() { records }: ToolCall) {
    const rows = await records.find('Repair', { order: 'bicycle' });
    return rows.map(({ bicycle, status }) => ({ bicycle, status }));
  }
}
