import type { RequestContext } from '#core';
import type { ToolDefinition } from '#tools';
import { isJsonObject, type JsonObject, member, headerMismatch } from '../protocol.js';

/** A parameter whose schema requires a `Mcp-Param-<header>` copy, by `x-mcp-header`. */
interface MirroredParameter {
  readonly path: readonly string[];
  readonly header: string;
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const mirrored = new WeakMap<ToolDefinition, readonly MirroredParameter[]>();

/** Only chains of `properties` count: elsewhere the value has no fixed place. */
function collect(schema: unknown, path: readonly string[], found: MirroredParameter[]): void {
  const properties = member(schema, 'properties');
  if (!isJsonObject(properties)) return;
  for (const [name, property] of Object.entries(properties)) {
    const header = member(property, 'x-mcp-header');
    if (typeof header === 'string' && header !== '') found.push({ path: [...path, name], header });
    collect(property, [...path, name], found);
  }
}

function mirroredParameters(tool: ToolDefinition): readonly MirroredParameter[] {
  let known = mirrored.get(tool);
  if (!known) {
    const found: MirroredParameter[] = [];
    collect(tool.inputSchema, [], found);
    known = found;
    mirrored.set(tool, known);
  }
  return known;
}

function sameValue(header: string, value: unknown): boolean {
  if (typeof value === 'number') return DECIMAL.test(header) && Number(header) === value;
  return header === String(value);
}

/**
 * Compares the annotated parameters of a call with their headers. An argument that is absent, null or not a plain value
 * needs no header.
 * @throws ProtocolFault -32020
 */
export function checkParameterHeaders(tool: ToolDefinition, args: JsonObject, context: RequestContext): void {
  const read = context.parameterHeader;
  if (!read) return;
  for (const { path, header } of mirroredParameters(tool)) {
    const value = path.reduce<unknown>((at, name) => member(at, name), args);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const sent = read(header);
    const decoded = sent === undefined ? undefined : decodeHeaderValue(sent);
    if (decoded === undefined || !sameValue(decoded, value)) throw headerMismatch(`Mcp-Param-${header}`);
  }
}

const SENTINEL = '=?base64?';
const SENTINEL_END = '?=';
const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PLAIN_TEXT = /^[\x20-\x7e\t]*$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of a mirroring header, plain or as `=?base64?…?=`; `undefined` when it is neither. */
export function decodeHeaderValue(header: string): string | undefined {
  const value = header.trim();
  if (!value.startsWith(SENTINEL) || !value.endsWith(SENTINEL_END)) {
    return PLAIN_TEXT.test(value) ? value : undefined;
  }
  const encoded = value.slice(SENTINEL.length, -SENTINEL_END.length);
  if (!CANONICAL_BASE64.test(encoded)) return undefined;
  try {
    return utf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}
