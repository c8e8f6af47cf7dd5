/** What is done with a field's values (docs/masking.md). */
export type MaskForm =
  | 'none'
  | 'drop'
  | 'deny'
  | 'mask'
  | 'hash'
  /** The last characters stay readable: a partial disclosure. */
  | { readonly mask: { readonly keep: number } }
  /** Pseudonyms that more than one field, or more than one tenant, shares. */
  | { readonly hash: { readonly domain?: string; readonly acrossTenants?: boolean } };

/** One form for every tier, or one per tier; a tier that is not named is masked as the one below it. */
export type MaskConfig =
  MaskForm | { readonly readonly: MaskForm; readonly write?: MaskForm; readonly admin?: MaskForm };

export type MasksConfig = Readonly<Record<string, MaskConfig>>;

const object = <const P extends object>(properties: P, required: readonly (keyof P & string)[]) => ({
  type: 'object' as const,
  additionalProperties: false,
  required,
  properties,
});

const FORM = {
  anyOf: [
    { enum: ['none', 'drop', 'deny', 'mask', 'hash'] },
    object({ mask: object({ keep: { type: 'integer', minimum: 1, maximum: 8 } }, ['keep']) }, ['mask']),
    object(
      {
        hash: object(
          {
            domain: { type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$' },
            acrossTenants: { type: 'boolean' },
          },
          [],
        ),
      },
      ['hash'],
    ),
  ],
} as const;

/** `policy.classes.<Class>.masks` as JSON Schema. */
export const MASKS_SCHEMA = {
  type: 'object',
  propertyNames: { pattern: '^[A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z][A-Za-z0-9_]*){0,7}$', maxLength: 256 },
  additionalProperties: {
    anyOf: [...FORM.anyOf, object({ readonly: FORM, write: FORM, admin: FORM }, ['readonly'])],
  },
} as const;
