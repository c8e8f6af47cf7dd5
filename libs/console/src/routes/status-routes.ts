import type { ExportOverview } from '#exports';
import type { TaskOverview } from '#jobs';
import { limitOf, type Route } from '../route.js';

/** How the service is, for its operators. */
export interface ServiceReport {
  readonly version: string;
  readonly node: string;
  /** ISO 8601. */
  readonly started_at: string;
  readonly replica: string;
  /** `replicas`: several processes serve as one. */
  readonly shared_state: 'process' | 'replicas';
  readonly memory_bytes: number;
  readonly policy: {
    readonly version: string;
    readonly classes: number;
    readonly agents: number;
    /** 1 for the configuration of the start, one more for each that followed. */
    readonly edition: number;
    readonly loaded_at: string;
    /** The last file that was not taken, and why; null when there was none. */
    readonly last_refused: { readonly at: string; readonly faults: readonly string[] } | null;
  };
  /** Of what is configured; empty when everything is within the process. */
  readonly dependencies: Readonly<Record<string, 'up' | 'down'>>;
  readonly streams: { readonly calls: number; readonly listening: number; readonly console: number };
}

/** Reads how this replica is. */
export abstract class ServiceStatus {
  abstract read(): Promise<ServiceReport>;
}

/** How the replica that answers is. */
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

/** Long calls and promised exports of everybody, the latest first. */
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
