import { expect } from 'vitest';
import { callTool, type Service, type ToolAnswer } from '../../support/service.js';

type Where = Record<string, unknown>;
export type Question = readonly [way: string, tool: string, args: Record<string, unknown>];

/** Every place where a constraint on Dossier can be written, with the class it is asked through. */
export function constraintQuestions(where: Where): Question[] {
  const dossier = { class_name: 'Dossier', where };
  const throughCards = (condition: unknown) => ({ class_name: 'Card', where: { dossier: condition } });
  const inner = { className: 'Dossier', where };
  return [
    ['a find', 'query_class', dossier],
    ['a count', 'count_objects', dossier],
    ['a plan', 'explain_query', dossier],
    ['a grouping', 'group_by', { ...dossier, field: 'title' }],
    ['a grouping by date', 'group_by_date', { ...dossier, field: 'created_at', interval: 'day' }],
    ['a list of values', 'distinct', { ...dossier, field: 'title' }],
    ['an export', 'export_data', dossier],
    ['a question to another class', 'query_class', throughCards({ $inQuery: inner })],
    ['its negation', 'count_objects', throughCards({ $notInQuery: inner })],
    ...(['$select', '$dontSelect'] as const).map((operator): Question => {
      const label = { [operator]: { query: inner, key: 'title' } };
      return [
        `values of another class by ${operator}`,
        'query_class',
        { class_name: 'Card', where: { label } },
      ];
    }),
  ];
}

/** Every place where a stage on Dossier can be written. */
export function stageQuestions(...stages: readonly Where[]): Question[] {
  const joined = { from: 'Dossier', let: {}, pipeline: stages, as: 'found' };
  return [
    ['a pipeline', 'aggregate', { class_name: 'Dossier', pipeline: stages }],
    ['a pipeline of an export', 'export_data', { class_name: 'Dossier', pipeline: stages }],
    ['a branch of a facet', 'aggregate', { class_name: 'Dossier', pipeline: [{ $facet: { one: stages } }] }],
    ['a join', 'aggregate', { class_name: 'Card', pipeline: [{ $lookup: joined }] }],
    [
      'a union',
      'aggregate',
      { class_name: 'Card', pipeline: [{ $unionWith: { coll: 'Dossier', pipeline: stages } }] },
    ],
    [
      'a join inside a facet',
      'aggregate',
      { class_name: 'Card', pipeline: [{ $facet: { one: [{ $lookup: joined }] } }] },
    ],
  ];
}

/** A filter, wherever filters are written. */
export const filterQuestions = (where: Where): Question[] => [
  ...constraintQuestions(where),
  ...stageQuestions({ $match: where }),
];

const CLIENT_SAFE = new Set(['query_class', 'count_objects']);

export const isRefused = ({ isError, rpcError }: ToolAnswer) => isError || rpcError !== undefined;

/** Whether a guess is right must not show: both are refused, in the same words. */
export async function expectNoOracle(
  service: Service,
  headers: Record<string, string>,
  [right, wrong]: readonly [right: readonly Question[], wrong: readonly Question[]],
): Promise<void> {
  for (const [index, [way, tool, args]] of right.entries()) {
    const answer = await callTool(service, tool, args, headers);
    expect([way, isRefused(answer)]).toEqual([way, true]);
    const other = await callTool(service, tool, wrong[index]?.[2], headers);
    expect([way, other.text, other.rpcError]).toEqual([way, answer.text, answer.rpcError]);
  }
}

/** As above, with the tools that a client without a master key may call. */
export const clientQuestions = (questions: readonly Question[]) =>
  questions.filter(([, tool]) => CLIENT_SAFE.has(tool));
