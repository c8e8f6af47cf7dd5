import { DEFAULT_SUBSCRIPTIONS } from '#subscriptions';
import { IsBoolean, IsIn, IsInt, IsNumber, Max, Min } from 'class-validator';
import { Option } from '../schema/option.js';

/** The section `tasks`: calls that go on after their answer (docs/guide/tasks.md). */
export class TaskSection {
  @Option('seconds that a task and its result are kept after their last change')
  @IsNumber()
  @Min(1)
  readonly lifetime: number = 3600;

  /** After two intervals without one the run is given to another worker. */
  @Option('seconds between two heartbeats of a run')
  @IsNumber()
  @Min(0.1)
  @Max(86_400)
  readonly heartbeat: number = 5;

  @Option(
    'runs in parallel in one process. A principal has one place less where there are two or more, and principals [take turns](tasks.md#whose-turn-it-is)',
  )
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

/** The section `changes`: sets of writes that are reviewed, applied and taken back as one (docs/guide/changes.md). */
export class ChangesSection {
  @Option(
    'of which writes the rows before them are kept, so that they can be taken back. `none`: of no write. `proposed`: of change sets. `all`: also of writes that happen at once',
  )
  @IsIn(['none', 'proposed', 'all'])
  readonly record: 'none' | 'proposed' | 'all' = 'proposed';

  @Option('seconds that a change set, and the rows before it, are kept once it is over')
  @IsNumber()
  @Min(1)
  readonly keep: number = 2_592_000;

  @Option(
    'who may take change sets back. `operators`: on the console and the command line. `agents`: also the agent whose set it is, for the same principal and tenant. `nobody`',
  )
  @IsIn(['operators', 'agents', 'nobody'])
  readonly undo: 'operators' | 'agents' | 'nobody' = 'operators';

  @Option('rows of a change set')
  @IsInt()
  @Min(1)
  @Max(1000)
  readonly maxEntries: number = 500;

  @Option('bytes of a change set, with the rows before it')
  @IsInt()
  @Min(65_536)
  @Max(12_582_912)
  readonly maxBytes: number = 8_388_608;

  @Option('seconds within which a change set has to be applied')
  @IsNumber()
  @Min(1)
  readonly openFor: number = 86_400;
}

/** The section `exports`: exports that are fetched after they were requested (docs/guide/exports.md). */
export class ExportSection {
  @Option('seconds that an export can be fetched')
  @IsNumber()
  @Min(1)
  readonly lifetime: number = 3600;

  @Option('maximum rows of an export')
  @IsInt()
  @Min(1)
  readonly maxRows: number = 1_000_000;
}

/** The section `subscriptions`: resources that sessions watch (docs/guide/subscriptions.md). */
export class SubscriptionsSection {
  @Option('false: no resource can be watched, and none is offered for it')
  @IsBoolean()
  readonly enabled: boolean = DEFAULT_SUBSCRIPTIONS.enabled;

  @Option(
    'seconds in which changes are collected into one notification, from the first change on; 0 or less: one notification per change',
  )
  @IsNumber()
  @Max(86_400)
  readonly debounce: number = DEFAULT_SUBSCRIPTIONS.debounce;

  @Option('resources that a session, or one `subscriptions/listen`, may watch')
  @IsInt()
  @Min(1)
  readonly maxPerSession: number = DEFAULT_SUBSCRIPTIONS.maxPerSession;

  @Option(
    'maximum sessions with subscriptions on all replicas, and separately of listening requests on each replica',
  )
  @IsInt()
  @Min(1)
  readonly maxSessions: number = DEFAULT_SUBSCRIPTIONS.maxSessions;
}

/** The section `reload`: reading the configuration again while the service runs (docs/operations/reload.md). */
export class ReloadSection {
  @Option('reads the file again when it has changed; otherwise only `SIGHUP` does')
  @IsBoolean()
  readonly watch: boolean = true;

  @Option('seconds between two checks of the file')
  @IsNumber()
  @Min(0.1)
  @Max(3600)
  readonly interval: number = 2;
}
