import { createHash } from 'node:crypto';
import { canonicalClassName, compileBudget, Refused } from '#agent';
import type { DeclaredClass, Policy, PolicySwitches } from '../model/class-policy.js';
import { Pseudonyms } from '../masking/pseudonyms.js';
import { FieldNames } from '../model/field-names.js';
import { translateWhere } from '../where/translate-where.js';
import { compileClass, type PolicyFault } from './compile-class.js';
import type { PolicyConfig } from './policy-config.js';

/** Every switch at its starting value (docs/policy.md#switches). */
const DEFAULT_SWITCHES: PolicySwitches = Object.freeze({
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
  defaultRecursionDepth: 4,
  maxLogSize: 1000,
  strictPointerShapes: true,
});

/**
 * Whether a constraint that the operator wrote (canonical filter, agent filter) is one that can be applied.
 * It may name fields outside an allowlist; it may not use refused operators or internal columns.
 * @returns what is wrong, or null
 */
export function constraintFault(
  constraint: unknown,
  className: string,
  names = new FieldNames(),
): string | null {
  try {
    translateWhere(
      constraint,
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
  /** Every fault at once; a policy with faults must not be served. */
  readonly faults: readonly PolicyFault[];
}

function compileTenantBudget(options: PolicyConfig['tenantBudget'], faults: PolicyFault[]) {
  try {
    return compileBudget(options);
  } catch (error) {
    faults.push({ path: 'policy.tenantBudget', message: (error as Error).message });
    return null;
  }
}

/** Another key is another policy; the mark tells which key it is no more than any pseudonym does. */
const KEY_MARK = { domain: null, className: '', path: '', tenant: null, acrossTenants: true };

/** Another function is another policy, as far as its text tells. */
const withFunctions = (_: string, value: unknown): unknown =>
  typeof value === 'function' ? `function ${String(value)}` : value;

/** A pseudonym without a secret could be found by hashing every likely value. */
function keylessHashes(
  classes: ReadonlyMap<string, DeclaredClass>,
  maskingKey: string | null,
): readonly PolicyFault[] {
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

/** Compiles declarations that already passed `POLICY_CONFIG_SCHEMA`. */
export function compilePolicy(
  config: PolicyConfig,
  environment: { readonly strictPointerShapes?: boolean } = {},
): CompiledPolicy {
  const faults: PolicyFault[] = [];
  const { maskingKey = null, ...told } = config;
  const { classes: declared = {}, tenantBudget, ...switches } = told;
  const classes = new Map<string, DeclaredClass>();
  for (const [name, classConfig] of Object.entries(declared)) {
    if (classes.has(canonicalClassName(name))) {
      faults.push({
        path: `policy.classes.${name}`,
        message: `declares the same class as '${canonicalClassName(name)}'`,
      });
    }
    const compiled = compileClass(name, classConfig, faults);
    classes.set(compiled.className, compiled);
    if (compiled.canonicalFilter) {
      const fault = constraintFault(
        compiled.canonicalFilter,
        compiled.className,
        new FieldNames(compiled.aliases),
      );
      if (fault) faults.push({ path: `policy.classes.${name}.canonicalFilter`, message: fault });
    }
  }
  const all = [...classes.values()];
  const pseudonyms = maskingKey === null ? null : new Pseudonyms(maskingKey);
  faults.push(...keylessHashes(classes, maskingKey));
  const policy: Policy = Object.freeze({
    version: createHash('sha256')
      .update(JSON.stringify({ ...told, maskingKey: pseudonyms?.of(null, KEY_MARK) }, withFunctions))
      .digest('hex')
      .slice(0, 16),
    switches: Object.freeze({
      ...DEFAULT_SWITCHES,
      ...switches,
      strictPointerShapes: environment.strictPointerShapes ?? true,
    }),
    tenantBudget: compileTenantBudget(tenantBudget, faults),
    classes,
    hasVisibleClasses: all.some((one) => one.visible),
    hasTenantScopes: all.some((one) => one.tenantScope !== null),
    pseudonyms,
  });
  return { policy, faults };
}
