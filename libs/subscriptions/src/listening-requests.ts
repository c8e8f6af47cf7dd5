import { Observable, type Subscriber } from 'rxjs';
import { type Agent, Refused, Unauthorized } from '#core';
import { type ListenEvent, ProtocolError } from '#dispatcher';
import type { WatchHandle } from './watcher.js';
import type { WatchService } from './watching.js';

/** Temporary refusals, which do not mean that this agent lacks a right. */
const PASSING: ReadonlySet<string> = new Set(['parse_error', 'timeout', 'cancelled']);

/** The resources of one listening request, watched while the request is open. */
export function listening(
  service: WatchService,
  uris: readonly string[],
  agent: Agent,
): Observable<ListenEvent> {
  return new Observable((subscriber) => {
    const request = new Listening(service, agent, subscriber);
    request.open(uris).catch((error: unknown) => subscriber.error(error));
    return () => request.close();
  });
}

class Listening {
  private readonly watchers = new Map<string, WatchHandle>();
  /** Changes that arrived before the client received the list of watched resources. */
  private early: Set<string> | null = new Set();
  private closed = false;

  constructor(
    private readonly service: WatchService,
    private readonly agent: Agent,
    private readonly subscriber: Subscriber<ListenEvent>,
  ) {}

  /** @throws an error that prevents the check, such as an unavailable database */
  async open(uris: readonly string[]): Promise<void> {
    await Promise.all(uris.map((uri) => this.watch(uri)));
    if (this.closed) return;
    this.subscriber.next({ watched: uris.filter((uri) => this.watchers.has(uri)) });
    const { early } = this;
    this.early = null;
    for (const updated of early ?? []) if (this.watchers.has(updated)) this.subscriber.next({ updated });
  }

  close(): void {
    this.closed = true;
    for (const watcher of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  private async watch(uri: string): Promise<void> {
    try {
      const resource = await this.service.admit(uri, this.agent);
      const watcher = await this.service.watch(resource, this.agent, {
        updated: () => this.notify(uri),
        ended: () => this.watchers.delete(uri),
      });
      if (this.closed) watcher.close();
      else this.watchers.set(uri, watcher);
    } catch (error) {
      if (!isDenial(error)) throw error;
    }
  }

  private notify(uri: string): void {
    if (this.early) this.early.add(uri);
    else this.subscriber.next({ updated: uri });
  }
}

/** Resources that the agent may not watch, or that cannot be watched, are left out without a reason. */
function isDenial(error: unknown): boolean {
  if (error instanceof Refused) return !PASSING.has(error.refusal.code);
  return error instanceof ProtocolError || error instanceof Unauthorized;
}
