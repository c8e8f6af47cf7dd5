import { AssertionError } from 'node:assert';
import type { Gate } from '@parley/server';
import type { Caller } from './caller.js';
import { assertNames, assertTool, type RefusalCode } from './known-names.js';
import type { TestingApplication } from './testing-application.js';
import { describeRefusal } from './call-results.js';

/** A refusal with this code or kind, by this gate. */
export interface Refusing {
  /** As `expectRefused` takes it. */
  readonly code: RefusalCode;
  /** The check that must refuse. */
  readonly gate: Gate;
}

/** The expectation of a call in `policyMatrix`. */
export type Cell = 'allowed' | Refusing;

/** A call, and its expected outcome per agent. */
export type MatrixRow<Agent extends string> = {
  readonly call: readonly [tool: string, args?: object];
} & Readonly<Record<Agent, Cell>>;

/**
 * A cell of `policyMatrix`: this gate refuses with this code or kind.
 * @throws AssertionError for a code or gate that does not exist
 */
export function refused(code: RefusalCode, gate: Gate): Refusing {
  assertNames(code, gate);
  return { code, gate };
}

/**
 * Makes every call as every agent and compares the outcomes. After a call of a tool that may write, rows are restored.
 * @param matrix agents by the names of the configuration, or callers by names of the test
 * @throws AssertionError listing all cells with unexpected outcomes; and for an empty or incomplete matrix
 */
export async function policyMatrix<Agent extends string>(
  application: TestingApplication,
  matrix: {
    readonly agents: readonly Agent[] | Readonly<Record<Agent, Caller>>;
    readonly rows: readonly MatrixRow<NoInfer<Agent>>[];
  },
): Promise<void> {
  const callers = createCallers(application, matrix.agents);
  const names = [...callers.keys()];
  const gaps = matrix.rows.flatMap((row) => listGaps(row, names));
  if (names.length === 0 || matrix.rows.length === 0) gaps.push('a matrix needs agents and rows');
  if (gaps.length > 0)
    throw failure(`the matrix has ${gaps.length} ${gaps.length === 1 ? 'fault' : 'faults'}`, gaps);
  const wrong: string[] = [];
  for (const row of matrix.rows) {
    const [tool, args = {}] = row.call;
    assertTool(application.parley, tool);
    for (const [name, callerFor] of callers) {
      const cell = (row as Readonly<Record<string, unknown>>)[name] as Cell;
      const difference = await judgeCell(callerFor(), cell, tool, args);
      if (difference !== null) wrong.push(`${tool} ${JSON.stringify(args)} as ${name}\n  ${difference}`);
      if (mayWrite(application, tool) && application.isResettable) await application.reset();
    }
  }
  const cells = matrix.rows.length * names.length;
  if (wrong.length > 0) throw failure(`${wrong.length} of ${cells} cells are not as expected`, wrong);
}

function failure(what: string, lines: readonly string[]): AssertionError {
  const message = `${what}:\n\n${lines.join('\n\n')}`;
  return new AssertionError({ message, expected: [], actual: lines, operator: 'policyMatrix' });
}

/** Named agents use a separate principal in each cell, because a matrix does not test rate limits. */
function createCallers<Agent extends string>(
  application: TestingApplication,
  agents: readonly Agent[] | Readonly<Record<Agent, Caller>>,
): Map<string, () => Caller> {
  if (Array.isArray(agents))
    return new Map((agents as readonly Agent[]).map((name) => [name, () => application.as(name)]));
  return new Map(
    Object.entries<Caller>(agents as Record<string, Caller>).map(([name, caller]) => [name, () => caller]),
  );
}

/** A missing cell would pass with any outcome. */
function listGaps(row: object, names: readonly string[]): string[] {
  const cells = row as Readonly<Record<string, unknown>>;
  const call = Array.isArray(cells['call']) ? JSON.stringify(cells['call']) : 'a row without a call';
  const isCell = (cell: unknown) =>
    cell === 'allowed' || (cell !== null && typeof cell === 'object' && 'code' in cell && 'gate' in cell);
  return [
    ...(Array.isArray(cells['call']) ? [] : [call]),
    ...names.filter((name) => !isCell(cells[name])).map((name) => `${call} says nothing of ${name}`),
    ...Object.keys(cells)
      .filter((name) => name !== 'call' && !names.includes(name))
      .map((name) => `${call} speaks of ${name}, who is not among the agents`),
  ];
}

async function judgeCell(caller: Caller, cell: Cell, tool: string, args: object): Promise<string | null> {
  if (cell !== 'allowed') {
    try {
      await caller.expectRefused(cell.code, cell.gate, tool, args);
      return null;
    } catch (error) {
      if (error instanceof AssertionError) return afterFirstLine(error.message);
      throw error;
    }
  }
  const attempt = await caller.attempt<unknown>(tool, args);
  return attempt.allowed ? null : `expected  to be allowed\n  instead   ${describeRefusal(attempt.refusal)}`;
}

const afterFirstLine = (text: string) => text.slice(text.indexOf('\n') + 1).trimStart();

function mayWrite({ parley }: TestingApplication, tool: string): boolean {
  const definition = parley.tools.get(tool)?.definition;
  return (
    definition !== undefined && (definition.permission !== 'readonly' || definition.name === 'call_method')
  );
}
