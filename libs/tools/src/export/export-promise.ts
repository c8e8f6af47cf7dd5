import type { GovernedClass } from '#data';
import { type Arguments, integer, oneOf, refuseArgument } from '../arguments/argument-readers.js';
import { ToolContent } from '../content.js';
import type { ToolCall } from '../tool.js';
import { exportColumns } from './export-columns.js';
import type { ExportDesk, ExportOrder } from './export-desk.js';
import { LINE_FORMATS } from './line-formats.js';

/** What a file of any number of rows cannot obey: rows are walked by id, one part after the other. */
const INLINE_ONLY = ['order', 'skip', 'pipeline', 'row_cap'] as const;

/**
 * `delivery: "resource"`: a link in place of rows. One row is read, so that whatever would refuse the export refuses it now.
 * @throws Refused
 */
export async function promisedExport(
  args: Arguments,
  { className }: GovernedClass,
  call: ToolCall,
  desk: ExportDesk,
): Promise<ToolContent> {
  const given = INLINE_ONLY.find((name) => Object.hasOwn(args, name) && args[name] !== null);
  if (given !== undefined) return refuseArgument(`${given} cannot be used with delivery resource`);
  const order = readOrder(args, className, desk.maxRows);
  const { where, keys, include } = order;
  await call.records.find(className, { where, keys, include, after: '', limit: 1, expectsScan: true });
  const { uri, path, fileName, mimeType, expiresAt, maxRows } = await desk.promise(order, call);
  const data = {
    class_name: className,
    format: order.format,
    uri,
    ...(path !== null && { path }),
    expires_at: expiresAt,
    max_rows: order.limit ?? maxRows,
    hint: `Read ${uri} as a resource, part by part${path === null ? '' : `, or GET ${path} from this server with the same credentials`}.`,
  };
  const description = `Rows of ${className} as ${order.format}, until ${expiresAt}`;
  return new ToolContent(
    [
      { type: 'text', text: JSON.stringify(data, null, 2) },
      { type: 'resource_link', uri, name: fileName, description, mimeType },
    ],
    data,
  );
}

function readOrder(args: Arguments, className: string, maxRows: number): ExportOrder {
  const { where, keys, include, limit } = args;
  const asked = limit !== undefined && limit !== null;
  return {
    className,
    format: oneOf(args, 'format', LINE_FORMATS, 'csv'),
    ...(where !== undefined && where !== null && { where }),
    ...(keys !== undefined && keys !== null && { keys }),
    ...(include !== undefined && include !== null && { include }),
    columns: exportColumns(args),
    limit: asked ? integer(args, 'limit', { default: maxRows, min: 1, max: maxRows, above: 'refuse' }) : null,
  };
}
