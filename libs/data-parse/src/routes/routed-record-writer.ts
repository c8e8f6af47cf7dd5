import { Refused, refusals } from '#agent';
import { type OperationContext, type ParseRow, RecordWriter, type StoreCall } from '#data';
import type { Where } from '#policy';
import { credentialsOf, type ParseCredentials } from '../connection/parse-credentials.js';
import { type SessionWatch, withSession } from './data-routes.js';
import { postureOf, routesFor } from './route-table.js';

/** Told to those whom the table gives no way to write. */
const NOBODY_SIGNED_IN =
  'Writes go through Parse Server, which knows sessions and the master key: it cannot act as an assumed user or role';

export interface WriteRoutes {
  rest(credentials: ParseCredentials): RecordWriter;
  readonly sessions: SessionWatch;
}

/**
 * The writer of a deployment with a Parse Server: whatever changes a row goes through it, so that its triggers run. It
 * writes for calls alone; without one it refuses.
 */
export class RoutedRecordWriter extends RecordWriter {
  constructor(
    private readonly routes: WriteRoutes,
    private readonly call: StoreCall | null = null,
  ) {
    super();
  }

  override forCall(call: StoreCall): RecordWriter {
    return new RoutedRecordWriter(this.routes, call);
  }

  create(className: string, fields: ParseRow, operation: OperationContext): Promise<ParseRow> {
    return this.write((writer) => writer.create(className, fields, operation));
  }

  update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
  ): Promise<ParseRow | null> {
    return this.write((writer) => writer.update(className, objectId, fields, where, operation));
  }

  delete(className: string, objectId: string, where: Where, operation: OperationContext): Promise<boolean> {
    return this.write((writer) => writer.delete(className, objectId, where, operation));
  }

  private async write<T>(work: (writer: RecordWriter) => Promise<T>): Promise<T> {
    const { call, routes } = this;
    if (!call || !routesFor('row_writes', postureOf(call.agent)).includes('rest'))
      throw new Refused(refusals.noRoute(NOBODY_SIGNED_IN));
    return withSession(call, routes.sessions, () => work(routes.rest(credentialsOf(call.agent.identity))));
  }
}
