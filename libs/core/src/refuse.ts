import { type Refusal, Refused } from './refusal.js';
import * as refusals from './refusals/index.js';

type Catalogue = typeof refusals;

/** Every refusal of the catalogue as it is thrown: `throw refuse.invalidQuery(…)`. */
export const refuse = Object.fromEntries(
  Object.entries(refusals).map(([name, describe]) => [
    name,
    (...details: never[]) => new Refused((describe as (...details: never[]) => Refusal)(...details)),
  ]),
) as unknown as { readonly [Name in keyof Catalogue]: (...details: Parameters<Catalogue[Name]>) => Refused };
