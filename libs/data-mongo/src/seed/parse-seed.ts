import { FaultList } from './fault-list.js';
import { parseRoles, parseSessions, parseUsers, userReferences } from './parse-principals.js';
import { parseObjects } from './parse-rows.js';
import { checkIndexes, DraftClasses, parseSchemas } from './parse-schemas.js';
import { type Seed, SeedError } from './seed.js';

/**
 * Reads a seed file's JSON. Classes and fields that only rows mention get the types their values have.
 * @throws SeedError listing every fault with its path
 */
export function parseSeed(json: unknown): Seed {
  const faults = new FaultList();
  const seed = faults.object(json, 'seed', ['schemas', 'users', 'roles', 'sessions', 'objects']);
  const classes = new DraftClasses();
  parseSchemas(seed['schemas'], classes, faults);
  for (const system of ['_User', '_Role', '_Session']) classes.of(system);
  const users = parseUsers(seed['users'], classes, faults);
  const references = userReferences(users);
  const roles = parseRoles(seed['roles'], references, classes, faults);
  const sessions = parseSessions(seed['sessions'], references, classes, faults);
  const { objects, relations } = parseObjects(seed['objects'], classes, faults);
  checkIndexes(classes, faults);
  if (faults.faults.length > 0) throw new SeedError(faults.faults);
  return { classes: [...classes].map((draft) => draft.finish()), users, roles, sessions, objects, relations };
}
