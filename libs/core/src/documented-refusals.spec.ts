import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DENIAL_KINDS, ERROR_CODES, GATES, type Refusal } from './refusal.js';
import * as refusals from './refusals/index.js';

const page = (name: string) => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');

const WINDOW = { quantity: 'rows', limit: 9000, window: 3600, retryAfter: 12 } as const;

/** Every refusal of the catalogue, once; one that is new does not compile until it stands here. */
const EXAMPLES: Record<keyof typeof refusals, readonly Refusal[]> = {
  invalidArgument: [refusals.invalidArgument('…')],
  invalidQuery: [refusals.invalidQuery('…')],
  accessDenied: [refusals.accessDenied('…', '…')],
  securityBlocked: [refusals.securityBlocked('where', '…')],
  hiddenClass: [refusals.hiddenClass('CLASS')],
  misconfiguredClass: [refusals.misconfiguredClass('CLASS', 'cause')],
  withheldColumn: [refusals.withheldColumn('FIELD', 'hidden_class')],
  unknownClass: [refusals.unknownClass('CLASS', ['NAME'])],
  classFiltered: [refusals.classFiltered('CLASS')],
  crossDatabase: [refusals.crossDatabase('CLASS', 'OTHER')],
  crossDatabaseChanges: [refusals.crossDatabaseChanges('CLASS', 'OTHER', '…')],
  readOnlyDatabase: [refusals.readOnlyDatabase('CLASS')],
  withoutTenantDatabase: [refusals.withoutTenantDatabase('CLASS')],
  databaseAway: [refusals.databaseAway('CLASS')],
  mixedIds: [refusals.mixedIds('CLASS')],
  fieldDenied: [
    refusals.fieldDenied('CONTEXT', 'PATH', 'FIELD', ['NAME']),
    refusals.fieldDenied('CONTEXT', 'PATH', '_p_FIELD', ['FIELD']),
  ],
  classPermissionDenied: [refusals.classPermissionDenied('CLASS', 'OPERATION')],
  protectedFieldRef: [refusals.protectedFieldRef('CONTEXT', 'PATH', 'FIELD')],
  maskedField: [refusals.maskedField('CONTEXT', 'PATH', 'FIELD', ['NAME'])],
  storeDenied: [refusals.storeDenied('STORE')],
  noRoute: [refusals.noRoute('…')],
  tooManyAnswers: [refusals.tooManyAnswers('OPERATOR', 'CLASS')],
  readHooksPossible: [refusals.readHooksPossible(['CLASS'])],
  identityUnresolved: [refusals.identityUnresolved('…')],
  subAgentWidens: [
    refusals.subAgentWidens({ reason: 'child_master_key', parent: ['*'], child: [], extra: [] }),
  ],
  agentFilterFailed: [refusals.agentFilterFailed('CLASS', '…')],
  agentValueUnset: [refusals.agentValueUnset('CLASS', '…')],
  tenantJoinDenied: [refusals.tenantJoinDenied('CLASS')],
  writesAreProposed: [refusals.writesAreProposed('…')],
  writesAreDirect: [refusals.writesAreDirect('TOOL')],
  changesInConflict: [refusals.changesInConflict(['ROW: …'], 0), refusals.changesInConflict(['ROW: …'], 9)],
  agentSuspended: [refusals.agentSuspended('AGENT')],
  toolFiltered: [refusals.toolFiltered('TOOL')],
  mutationsNotAllowed: [refusals.mutationsNotAllowed('TOOL')],
  notClientSafe: [refusals.notClientSafe('TOOL', ['NAME'])],
  tierTooLow: [refusals.tierTooLow('TOOL', 'write', 'readonly')],
  unknownTool: [refusals.unknownTool('TOOL', 'readonly', ['NAME'])],
  unknownArgument: [refusals.unknownArgument('TOOL', 'ARGUMENT', ['NAME'], ['NAME'])],
  envGateClosed: [refusals.envGateClosed('Raw CRUD', 'TOOL', ['VARIABLE=true'])],
  writeGatesClosed: [refusals.writeGatesClosed('TOOL', ['VARIABLE=true'])],
  methodFiltered: [refusals.methodFiltered('CLASS.METHOD')],
  methodEnvClosed: [refusals.methodEnvClosed('Write', 'CLASS.METHOD', 'VARIABLE')],
  classChangeDenied: [refusals.classChangeDenied()],
  holdsOthersRows: [refusals.holdsOthersRows('CLASS')],
  rowNotAdmitted: [refusals.rowNotAdmitted('CLASS'), refusals.rowNotAdmitted('CLASS', 'FIELD')],
  cancelled: [refusals.cancelled('REASON'), refusals.cancelled('server_shutdown')],
  rateLimited: [refusals.rateLimited(60, 60, 12)],
  tooManyRunning: [refusals.tooManyRunning(20, 2)],
  databaseShareTaken: [refusals.databaseShareTaken(2)],
  exportNotStored: [refusals.exportNotStored(2)],
  changeNotNoted: [refusals.changeNotNoted()],
  budgetExhausted: [refusals.budgetExhausted(WINDOW as never)],
  auditUnavailable: [refusals.auditUnavailable(5)],
  auditWithheld: [refusals.auditWithheld('TOOL', true), refusals.auditWithheld('TOOL', false)],
  toolTimedOut: (['query', 'other', 'write'] as const).map((work) => refusals.toolTimedOut('TOOL', 30, work)),
  answerTooLarge: [refusals.answerTooLarge('STORE')],
  answersBusy: [refusals.answersBusy()],
  databaseTimedOut: [refusals.databaseTimedOut(25_000, true), refusals.databaseTimedOut(25_000, false)],
  outcomeUnknown: [refusals.outcomeUnknown(refusals.parseError('…'))],
  keyedOutcomeUnknown: [refusals.keyedOutcomeUnknown()],
  keysUnavailable: [refusals.keysUnavailable()],
  parseError: [refusals.parseError('…')],
  objectNotFound: [refusals.objectNotFound('CLASS', 'ID')],
  notTenantsRows: [refusals.notTenantsRows('CLASS', ['ID'])],
  pointerShapeMismatch: [refusals.pointerShapeMismatch('CLASS', 'FIELD')],
  collectionScan: [refusals.collectionScan('…')],
  facetFilterUnsafe: [refusals.facetFilterUnsafe('CLASS', ['NAME'])],
  masterAtlasRequired: [refusals.masterAtlasRequired()],
  notSearchable: [refusals.notSearchable('CLASS')],
  missingTenantScope: [refusals.missingTenantScope('CLASS')],
  searchNotConfigured: [refusals.searchNotConfigured('…')],
  embeddingsNotConfigured: [refusals.embeddingsNotConfigured()],
  embeddingFailed: [refusals.embeddingFailed('…')],
  embeddingBudgetSpent: [refusals.embeddingBudgetSpent(1000, 60, 12)],
  notImplemented: [refusals.notImplemented('…')],
  internalError: [refusals.internalError('TOOL')],
  approvalDenied: [refusals.approvalDenied('…')],
  deniedByPerson: [refusals.deniedByPerson('…')],
  clientCannotAnswer: [refusals.clientCannotAnswer('QUESTION')],
  clientUnreachable: [refusals.clientUnreachable('REASON'), refusals.clientUnreachable('timed-out')],
};

const every = Object.values(EXAMPLES).flat();

const row = ({ code, gate, details, opaque, message }: Refusal): string =>
  `| \`${code}\` | ${gate === '…' ? '…' : `\`${gate}\``} | ${details?.kind ? `\`${details.kind}\`` : ''} | ${
    opaque ? 'nothing: JSON-RPC -32602 `Invalid params`' : `${message.replaceAll(/[|<]/g, '\\$&')}`
  } |`;

const codes: readonly string[] = ERROR_CODES;

const LIST = `# Every refusal

Written from the catalogue in the code: \`npx vitest run --project unit libs/core -u\`. What the codes, kinds and gates mean:
[refusals](refusals.md). Words in capitals and \`…\` stand for what the call was about.

| Code | Gate | Kind | Text for the agent |
| --- | --- | --- | --- |
${[...every]
  .sort((a, b) => codes.indexOf(a.code) - codes.indexOf(b.code))
  .map(row)
  .join('\n')}
`;

/** The names in the first cells of all tables of a text. */
function named(text: string): string[] {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((line) =>
    [...(line.split('|')[1] ?? '').matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name),
  );
}

/** The gates that code outside the catalogue names, as it names them. */
function gatesInCode(): Set<string> {
  const libs = fileURLToPath(new URL('../../', import.meta.url));
  const files = readdirSync(libs, { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      /^[^/]+\/src\/.*\.ts$/.test(file) && !/\.(spec|fixture)\.ts$|under-test|telemetry|console/.test(file),
  );
  const namings = [
    /(?:accessDenied|securityBlocked|blockFilter)\(\s*'([a-z_]+)'/g,
    /\bgate(?: =|:) '([a-z_]+)'/g,
    /invalidArgument\((?:[^()]|\([^()]*\))*,\s*'([a-z_]+)',?\s*\)/g,
  ];
  return new Set(
    files.flatMap((file) => {
      const code = readFileSync(`${libs}${file}`, 'utf8');
      return namings.flatMap((naming) => [...code.matchAll(naming)].map(([, gate = '']) => gate));
    }),
  );
}

describe('the pages on refusals', () => {
  const [codes = '', kinds = '', gates = ''] = page('reference/refusals')
    .replace(/\n## Security refusals[^]*/, '')
    .split(/`parse\.details` holds|\n## Gates/);

  it('list the catalogue as it is', async () => {
    await expect(LIST).toMatchFileSnapshot('../../../docs/reference/every-refusal.md');
  });

  it('explain every code and every kind', () => {
    expect(named(codes).filter((name) => name !== 'parse.error_code')).toEqual([...ERROR_CODES]);
    expect(
      named(kinds)
        .filter((name) => name !== 'kind')
        .sort(),
    ).toEqual([...DENIAL_KINDS].sort());
  });

  it('explain every gate that refuses, and no other', () => {
    const used = new Set([...every.map(({ gate }) => gate), ...gatesInCode()]);
    used.delete('…');
    expect(named(gates).sort()).toEqual([...used].sort());
    expect([...GATES].sort()).toEqual([...used].sort());
  });
});
