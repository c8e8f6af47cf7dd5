import { StoreError } from '#data';
import {
  type CatalogueProblem,
  countDanglingReferences,
  type MongoConnection,
  MongoSchemaCatalogue,
} from '#data-mongo';
import { catalogueOf } from '#parley/instance';
import type { Policy } from '#policy';
import { type Finding, fail, ok, warn } from './finding.js';

/**
 * Checks the collections of plain classes: what the catalogue finds wrong with their declarations, and whether references lead
 * to documents. It reads a few documents of each, and shows no value of any.
 */
export async function checkClasses(policy: Policy, mongo: MongoConnection | null): Promise<Finding[]> {
  const plain = [...policy.classes.values()].filter((declared) => declared.plain !== null);
  if (plain.length === 0 || mongo === null) return [];
  const catalogue = catalogueOf({ mongo, parse: null }, () => policy);
  if (!(catalogue instanceof MongoSchemaCatalogue)) return [];
  try {
    const classes = await catalogue.snapshot();
    const problems = await catalogue.problems();
    const absent = problems.filter(
      ({ kind }) => kind === 'missing_collection' && policy.databases.size === 0,
    );
    if (absent.length === plain.length)
      return [
        fail(
          'classes.collection',
          `none of the ${plain.length} collections that classes name is in the database`,
          'check database.name and the database at the end of database.uri',
        ),
      ];
    const findings = [
      ...problems.map(judgeProblem),
      ...(await countDanglingReferences(mongo, classes)).map(
        ({ className, field, targetClass, asked, missing }) =>
          warn(
            'classes.reference',
            `${className}.${field}: ${missing} of ${asked} values in a sample are the id of no ${targetClass}`,
            'correct targetClass or field of the property, or leave targetClass out',
          ),
      ),
    ];
    return findings.length > 0
      ? findings
      : [ok('classes', `${plain.length} plain classes have their collections`)];
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    // What the database does not answer is a finding on the database.
    return error.code === 'unavailable'
      ? []
      : [
          fail(
            'classes',
            `its collections cannot be read (${error.code})`,
            'give the user of database.uri the role read',
          ),
        ];
  }
}

/** The catalogue says what is wrong, and after the last colon what to do. */
function judgeProblem({ className, kind, text }: CatalogueProblem): Finding {
  const colon = text.lastIndexOf(': ');
  const found = `${className}: ${colon < 0 ? text : text.slice(0, colon)}`;
  const remedy = colon < 0 ? 'correct its entry in policy.classes' : text.slice(colon + 2);
  switch (kind) {
    case 'database_away':
      // Whether the service needs it `mongodb.further` judges.
      return warn('classes.database', found, remedy);
    case 'missing_collection':
    case 'system_collection':
      return fail('classes.collection', found, remedy);
    case 'undeclared_source':
    case 'collated_view':
      return fail('classes.view', found, remedy);
    case 'mixed_ids':
      return fail('classes.id', found, remedy);
    case 'type_conflict':
      return warn('classes.validator', found, remedy);
    case 'unknown_target':
    case 'mixed_references':
      return warn('classes.reference', found, remedy);
    case 'not_sampled':
      return warn(
        'classes.sample',
        found,
        'declare the columns that agents need under properties, with their types',
      );
  }
}
