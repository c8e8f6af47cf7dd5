import { DEFAULT_SUBSCRIPTIONS } from '#subscriptions';
import { IsBoolean, IsInt, IsNumber, Max, Min, Option } from '../schema/option.js';

/** The section `tasks`: calls that go on after their answer (docs/guide/tasks.md). */
export class TaskSection {
  @Option('seconds that a task and its result are kept after their last change')
  @IsNumber()
  @Min(1)
  readonly lifetime: number = 3600;

  @Option('seconds between two questions, told to the client')
  @IsNumber()
  @Min(0.1)
  readonly pollInterval: number = 1;

  /** After two intervals without one the run is given to another worker. */
  @Option('seconds between two signs of life of a run')
  @IsNumber()
  @Min(0.1)
  readonly heartbeat: number = 5;

  @Option('runs at once in one process')
  @IsInt()
  @Min(1)
  readonly concurrency: number = 4;

  @Option(
    'tasks that a principal may begin within a `lifetime`, on all replicas together; further ones are `rate_limited`',
  )
  @IsInt()
  @Min(1)
  readonly maxPerPrincipal: number = 1000;
}

/** The section `exports`: exports that are fetched after they were requested (docs/guide/exports.md). */
export class ExportSection {
  @Option('seconds that an export can be fetched')
  @IsNumber()
  @Min(1)
  readonly lifetime: number = 3600;

  @Option('rows that none goes beyond')
  @IsInt()
  @Min(1)
  readonly maxRows: number = 1_000_000;

  @Option('exports at once, for one principal as one agent; the oldest gives way')
  @IsInt()
  @Min(1)
  readonly maxPerPrincipal: number = 20;
}

/** The section `subscriptions`: resources that sessions watch (docs/guide/subscriptions.md). */
export class SubscriptionsSection {
  @Option(
    'seconds from the first change to the one update that tells of it and all that follow until then; 0 or less: one per change',
  )
  @IsNumber()
  readonly debounce: number = DEFAULT_SUBSCRIPTIONS.debounce;

  @Option('resources that a session, or one `subscriptions/listen`, may watch')
  @IsInt()
  @Min(1)
  readonly maxPerSession: number = DEFAULT_SUBSCRIPTIONS.maxPerSession;

  @Option('sessions with subscriptions on all replicas, and separately listening requests on each')
  @IsInt()
  @Min(1)
  readonly maxSessions: number = DEFAULT_SUBSCRIPTIONS.maxSessions;
}

/** The section `reload`: reading the configuration anew while the service runs (docs/operations/reload.md). */
export class ReloadSection {
  @Option('looks whether the file has changed; without it, only `SIGHUP` has it read anew')
  @IsBoolean()
  readonly watch: boolean = true;

  @Option('seconds between two looks')
  @IsNumber()
  @Min(0.1)
  @Max(3600)
  readonly interval: number = 2;
}
