import { Get, Inject, Query } from '@nestjs/common';
import { ExportOverview } from '#exports';
import { validated } from '#streaming';
import { TaskOverview } from '#tasks';
import { OperatorController } from '../console.guards.js';
import { type ServiceReport, ServiceStatus } from '../service-status.js';
import { PageQuery } from './page-query.js';

/** The status of the replica that answers, and tasks and exports of all principals, the latest first. */
@OperatorController('console/api')
export class StatusController {
  constructor(
    @Inject(ServiceStatus) private readonly status: ServiceStatus,
    @Inject(TaskOverview) private readonly tasks: TaskOverview,
    @Inject(ExportOverview) private readonly exports: ExportOverview,
  ) {}

  @Get('status')
  read(): Promise<ServiceReport> {
    return this.status.read();
  }

  @Get('tasks')
  async latestTasks(@Query(validated(PageQuery)) { limit }: PageQuery): Promise<object> {
    return { tasks: await this.tasks.latest(limit) };
  }

  @Get('exports')
  async latestExports(@Query(validated(PageQuery)) { limit }: PageQuery): Promise<object> {
    return { exports: await this.exports.latest(limit) };
  }
}
