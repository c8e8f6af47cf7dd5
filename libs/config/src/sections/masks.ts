import { FIELD_NAME, type MaskConfig } from '#policy';
import { readSchema } from '../schema/class-schema.js';
import { IsBoolean, IsInt, IsString, Matches, Max, Min } from 'class-validator';
import type { SchemaNode } from '#schema';
import { AnyOf, Nested, Option } from '../schema/option.js';

class KeptCharacters {
  @Option('number of characters at the end that remain readable', { required: true })
  @IsInt()
  @Min(1)
  @Max(8)
  readonly keep!: number;
}

class PartialMask {
  @Option('masks all but the last characters', { required: true })
  @Nested(KeptCharacters)
  readonly mask!: KeptCharacters;
}

class PseudonymOptions {
  @Option('fields with the same domain share their pseudonyms')
  @IsString()
  @Matches(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, {
    message: 'a letter, then letters, digits and _ . -, 64 characters at most',
  })
  readonly domain?: string;

  @Option('tenants share pseudonyms', { default: false })
  @IsBoolean()
  readonly acrossTenants?: boolean;
}

class PseudonymMask {
  @Option('a pseudonym instead of the value', { required: true })
  @Nested(PseudonymOptions)
  readonly hash!: PseudonymOptions;
}

const MASK_FORMS = [{ enum: ['none', 'drop', 'deny', 'mask', 'hash'] }, PartialMask, PseudonymMask] as const;

/** One form per tier; a tier that is not named is masked as the one below it. */
class MaskByTier {
  @Option('for agents of this tier, and those above it that are not named', { required: true })
  @AnyOf(...MASK_FORMS)
  readonly readonly!: MaskConfig;

  @Option('for agents of this tier, and `admin` if it is not named')
  @AnyOf(...MASK_FORMS)
  readonly write?: MaskConfig;

  @Option('for agents of this tier')
  @AnyOf(...MASK_FORMS)
  readonly admin?: MaskConfig;
}

/** What a policy may say of the mask of a field. */
export const MASK: SchemaNode = {
  anyOf: [MASK_FORMS[0], readSchema(PartialMask), readSchema(PseudonymMask), readSchema(MaskByTier)],
};

/** A field, or a path in it, that a mask names. */
export const MASKED_PATH: SchemaNode = {
  pattern: `^${FIELD_NAME}(\\.${FIELD_NAME}){0,7}$`,
  description: 'the name of a field, or names with dots between them, 8 at most',
  maxLength: 256,
};
