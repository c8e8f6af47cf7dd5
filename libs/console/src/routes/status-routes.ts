import type { ExportOverview } from '#exports';
import type { TaskOverview } from '#jobs';
import { limitOf, type Route } from '../route.js';

/** Status of a replica for operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: the state is shared by several processes. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** Number of the configuration version: 1 at the start, incremented by each reload. */
    readonly edition: number;
    readonly loaded_at: string;
    /** The latest configuration file that was refused, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Configured external services; empty when there are none. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** Reads the status of this replica. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}

/** The status of the replica that answers. */
export function statusRoutes(status: ServiceStatus): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/status',
      answer: async () => ({ body: await status.read() }),
    },
  ];
}

interface StatusRoutesDependencies {
  readonly tasks: TaskOverview;
  readonly exports: ExportOverview;
}

/** Tasks and exports of all principals, the latest first. */
export function workRoutes({ tasks, exports }: StatusRoutesDependencies): readonly Route[] {
  return [
    {
      verb: 'GET',
      path: '/console/api/tasks',
      answer: async ({ query }) => ({ body: { tasks: await tasks.latest(limitOf(query)) } }),
    },
    {
      verb: 'GET',
      path: '/console/api/exports',
      answer: async ({ query }) => ({ body: { exports: await exports.latest(limitOf(query)) } }),
    },
  ];
}
