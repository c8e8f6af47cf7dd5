import { AssertionError } from 'node:assert';
import {
  type ApplicationCode,
  DENIAL_KINDS,
  type DenialKind,
  ERROR_CODES,
  type ErrorCode,
  type Gate,
  GATES,
  type Parley,
  SchemaCatalogue,
} from '@parley/server';

/** The code of a refusal, or its more specific kind (docs/reference/refusals.md). */
export type RefusalCode = ErrorCode | ApplicationCode | DenialKind;

function assertKnown(what: string, name: unknown, known: readonly string[]): void {
  if (typeof name === 'string' && known.includes(name)) return;
  throw new AssertionError({
    message: `there is no ${what} '${String(name)}'. Known: ${known.join(', ')}`,
    actual: name,
    expected: known,
    operator: 'known',
  });
}

/** @throws TypeError for a member with another name: it would have no effect, and the test would prove nothing */
export function assertKeys(what: string, given: object | undefined, known: readonly string[]): void {
  const unknown = Object.keys(given ?? {}).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`${what}: unknown option '${unknown}'; there are: ${known.join(', ')}`);
}

/** @throws AssertionError listing the valid names: an expectation with an unknown name proves nothing */
export function assertNames(code: RefusalCode, gate: Gate): void {
  if (!code.startsWith('application:'))
    assertKnown('code or kind of a refusal', code, [...ERROR_CODES, ...DENIAL_KINDS]);
  assertKnown('gate', gate, GATES);
}

export const isKind = (code: RefusalCode): code is DenialKind =>
  (DENIAL_KINDS as readonly string[]).includes(code);

/** @throws AssertionError for a tool that does not exist, because it is always refused */
export function assertTool({ tools }: Pick<Parley, 'tools'>, tool: string): void {
  const names = tools.all().map(({ definition }) => definition.name);
  assertKnown('tool', tool, names);
}

/**
 * A class that neither database nor policy has may be refused as outside the agent's classes.
 * @throws AssertionError
 */
export async function assertClass(
  parley: Parley,
  className: unknown,
  ofPolicy: readonly string[],
): Promise<void> {
  if (typeof className !== 'string') return;
  const schemas = await parley.get<SchemaCatalogue>(SchemaCatalogue).snapshot();
  const names = [...new Set([...schemas.classNames(), ...ofPolicy])];
  const known = [...names, ...names.map((name) => name.replace(/^_/, ''))];
  if (known.includes(className)) return;
  assertKnown('class', className, names);
}
