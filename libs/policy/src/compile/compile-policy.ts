import { createHash } from 'node:crypto';
import { canonicalClassName, compileBudget, isParseClassName, Refused, withCode } from '#core';
import { Pseudonyms } from '../masking/mask-row.js';
import type { StorageForm } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import type { DeclaredClass, Policy, PolicySwitches } from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import { isPlainObject } from '../model/where.js';
import { withSampleValues } from '../scope/agent-values.js';
import { translateWhere } from '../where/translate-where.js';
import type { PolicyConfig } from './policy-config.js';
import { compileClass } from './compile-class.js';

/** The defaults of all switches (docs/reference/policy-options.md#switches). */
const DEFAULT_SWITCHES: PolicySwitches = Object.freeze({
  unlistedClasses: 'refuse',
  requireApprovalFor: [],
  refuseCollscan: false,
  exposeExplain: false,
  concealHidden: false,
  agentDebug: false,
  includeSourceProvenance: false,
  neutralizeFormulas: false,
  strictToolFilter: false,
  strictClassFilter: false,
  suppressMasterKeyWarning: false,
  strictRole: false,
  promptMarkerStrict: false,
  promptInjectionCanaries: [],
  canaryAction: null,
  tokenCostPerMillionInput: null,
  embedCostPerMillionTokens: null,
  unknownArguments: 'refuse',
  listAllTools: false,
  prettyText: false,
  defaultRecursionDepth: 4,
  maxLogSize: 1000,
  strictPointerShapes: true,
});

/**
 * Checks a constraint of the operator (canonical filter, agent filter). It may name fields outside an allowlist; it may not
 * use refused operators or internal columns.
 * @returns why it cannot be applied; null when it can
 */
export function constraintIssue(
  constraint: unknown,
  className: string,
  names = new FieldNames(),
): string | null {
  try {
    translateWhere(
      isPlainObject(constraint) ? withSampleValues(constraint) : constraint,
      { className, schema: undefined, names, readable: null },
      {
        reach: (target) => ({
          className: target,
          schema: undefined,
          names: new FieldNames(),
          readable: null,
        }),
      },
      { strictPointerShapes: false, checkFields: false },
    );
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const cause = error.refusal.cause ?? error.refusal.message;
    const [, operator] = /^code_execution at (\$\w+)/.exec(cause) ?? [];
    if (operator === undefined) return cause;
    return `'${operator}' cannot stand in it: where it fails on one row, every call would fail. Write conditions on columns`;
  }
}

export interface CompiledPolicy {
  readonly policy: Policy;
  /** All issues; a policy with any must not be served. */
  readonly issues: readonly PolicyIssue[];
}

function compileTenantBudget(options: PolicyConfig['tenantBudget'], issues: PolicyIssue[]) {
  try {
    return compileBudget(options);
  } catch (error) {
    issues.push({ path: 'policy.tenantBudget', message: (error as Error).message });
    return null;
  }
}

/** Makes the version depend on the masking key without revealing it: a pseudonym under that key. */
const KEY_MARK = { domain: null, className: '', path: '', tenant: null, acrossTenants: true };

/** A hash without a secret key could be reversed by hashing every likely value. */
function keylessHashes(
  classes: ReadonlyMap<string, DeclaredClass>,
  maskingKey: string | null,
): readonly PolicyIssue[] {
  if (maskingKey !== null) return [];
  return [...classes.values()].flatMap(({ className, masks }) =>
    [...masks]
      .filter(([, tiers]) => Object.values(tiers).some(({ kind }) => kind === 'hash'))
      .map(([field]) => ({
        path: `policy.classes.${className}.masks.${field}`,
        message: 'hash needs policy.maskingKey, a secret of at least 32 characters',
        related: ['policy.maskingKey'],
      })),
  );
}

export interface PolicyEnvironment {
  /** Default true. */
  readonly strictPointerShapes?: boolean;
  /** How the database stores a class that does not say so. Default `parse`. */
  readonly storage?: StorageForm;
  /** Whether the database is only read. Default false. */
  readonly readOnly?: boolean;
  /** What classes call the database of the service; undefined: it has no name. */
  readonly databaseName?: string | undefined;
  /** Databases beside that of the service. Default none. */
  readonly databases?: Policy['databases'];
}

/** Compiles declarations that already passed the checks of the configuration, or are typed in code. */
export function compilePolicy(
  config: PolicyConfig,
  {
    strictPointerShapes = true,
    storage = 'parse',
    readOnly = false,
    databaseName,
    databases = new Map(),
  }: PolicyEnvironment = {},
): CompiledPolicy {
  const issues: PolicyIssue[] = [];
  const { maskingKey = null, ...publicConfig } = config;
  const { classes: declared = {}, tenantBudget, ...switches } = publicConfig;
  const classes = new Map<string, DeclaredClass>();
  for (const [name, classConfig] of Object.entries(declared)) {
    if (classes.has(canonicalClassName(name))) {
      issues.push({
        path: `policy.classes.${name}`,
        message: `declares the same class as '${canonicalClassName(name)}'`,
      });
    }
    const database = readDatabase(name, classConfig.database, { databaseName, databases }, issues);
    const form = database === null ? storage : (databases.get(database)?.storage ?? storage);
    const compiled = compileClass(name, classConfig, issues, { name: database, storage: form });
    classes.set(compiled.className, compiled);
    for (const option of ['canonicalFilter', 'filters'] as const) {
      const constraint = compiled[option];
      const issue =
        constraint && constraintIssue(constraint, compiled.className, new FieldNames(compiled.aliases));
      if (issue) issues.push({ path: `policy.classes.${name}.${option}`, message: issue });
    }
  }
  const all = [...classes.values()];
  issues.push(...listSharedCollections(all), ...checkUnlistedAllowed(config, storage));
  const pseudonyms = maskingKey === null ? null : new Pseudonyms(maskingKey);
  issues.push(...keylessHashes(classes, maskingKey));
  const versioned = {
    ...publicConfig,
    maskingKey: pseudonyms?.of(null, KEY_MARK),
    ...(storage === 'plain' && { storage }),
    ...(readOnly && { readOnly }),
    ...(databases.size > 0 && { databases: [...databases] }),
  };
  const policy: Policy = Object.freeze({
    version: createHash('sha256').update(JSON.stringify(versioned, withCode)).digest('hex').slice(0, 16),
    storage,
    readOnly,
    databases,
    switches: Object.freeze({
      ...DEFAULT_SWITCHES,
      ...switches,
      strictPointerShapes,
    }),
    tenantBudget: compileTenantBudget(tenantBudget, issues),
    classes,
    hasVisibleClasses: all.some((one) => one.visible),
    hasTenantScopes: all.some((one) => one.tenantScope !== null),
    pseudonyms,
  });
  return { policy, issues };
}

/** Name of the further database that holds a class; null: that of the service. */
function readDatabase(
  className: string,
  given: string | undefined,
  { databaseName, databases }: Pick<PolicyEnvironment, 'databaseName'> & Pick<Policy, 'databases'>,
  issues: PolicyIssue[],
): string | null {
  if (given === undefined || given === databaseName) return null;
  const report = (message: string) =>
    issues.push({ path: `policy.classes.${className}.database`, message, related: ['databases'] });
  const known = [...(databaseName === undefined ? [] : [databaseName]), ...databases.keys()];
  if (!databases.has(given))
    report(
      known.length === 0
        ? `'${given}' is unknown: list it under databases, or leave database out`
        : `'${given}' is none of databases: write one of ${known.join(', ')}`,
    );
  else if (isParseClassName(className))
    report(
      `'${canonicalClassName(className)}' is a class of Parse's own, whose users and roles are those of the first database: leave database out`,
    );
  return given;
}

/** A collection that Parse stores, read as a plain one, would be read without its ACLs. */
function listSharedCollections(classes: readonly DeclaredClass[]): PolicyIssue[] {
  const place = (collection: string, database: string | null) => JSON.stringify([database, collection]);
  const ofParse = new Set(
    classes.filter(({ plain }) => plain === null).map((one) => place(one.className, one.database)),
  );
  return classes.flatMap(({ className, plain, database }) =>
    plain !== null && ofParse.has(place(plain.collection, database))
      ? [
          {
            path: `policy.classes.${className}.collection`,
            message: `'${plain.collection}' holds the rows of a Parse class, which its ACLs protect: read it by that class`,
            related: [`policy.classes.${plain.collection}.storage`],
          },
        ]
      : [],
  );
}

function checkUnlistedAllowed({ unlistedClasses }: PolicyConfig, storage: StorageForm): PolicyIssue[] {
  if (storage === 'parse' || unlistedClasses !== 'allow') return [];
  return [
    {
      path: 'policy.unlistedClasses',
      message:
        'cannot be allow where database.storage is plain: list each collection under policy.classes, and write refuse or nothing here',
      related: ['database.storage'],
    },
  ];
}
