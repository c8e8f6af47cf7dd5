import type { SeededRandom } from './seeded-random.js';
import { pointer, type World, type WorldClass } from './rights-world.js';

export type Question =
  | {
      readonly kind: 'find';
      readonly className: string;
      readonly where: Record<string, unknown>;
      readonly order?: string;
      readonly include?: string;
      readonly keys?: readonly string[];
    }
  | { readonly kind: 'count'; readonly className: string; readonly where: Record<string, unknown> }
  | {
      readonly kind: 'get';
      readonly className: string;
      readonly objectId: string;
      readonly include?: string;
    };

export function askSomething(random: SeededRandom, world: World): Question {
  if (random.chance(0.12)) return aboutUsers(random, world);
  const one = random.pick(world.classes);
  const folder = random.chance(0.2);
  const className = folder ? one.folderClass : one.name;
  const roll = random.next();
  const include =
    !folder && random.chance(0.3)
      ? { include: random.pick(['folder', 'in_folder', 'owner', 'in_folder.owner']) }
      : {};
  if (roll < 0.2)
    return { kind: 'get', className, objectId: random.pick(folder ? one.folderIds : one.ids), ...include };
  const where = folder ? folderWhere(random, world, one) : noteWhere(random, world, one, 2);
  // Parse Server counts along a relation without knowing who asks.
  if (roll < 0.35) return { kind: 'count', className, where: plain(where) };
  const order = folder
    ? ['label', 'objectId', 'secret']
    : ['rank', '-title', 'Title', 'secret', '-SECRET', '-objectId'];
  return {
    kind: 'find',
    className,
    where,
    ...include,
    ...(random.chance(0.4) && { order: random.pick(order) }),
    ...(!folder &&
      one.mayAskKeys &&
      !('include' in include) &&
      random.chance(0.3) && {
        keys: [
          'title',
          ...random.some(['Title', 'secret', 'SECRET', 'rank', 'owner', 'meta_data', 'photo', 'pages']),
        ],
      }),
  };
}

function aboutUsers(random: SeededRandom, world: World): Question {
  const className = '_User';
  if (random.chance(0.4)) return { kind: 'get', className, objectId: random.pick(world.users).id };
  const where = random.chance(0.6)
    ? {}
    : { [random.pick(['email', 'nick', 'username'])]: `${random.pick(world.users).id}@example.com` };
  return random.chance(0.2) ? { kind: 'count', className, where } : { kind: 'find', className, where };
}

function folderWhere(random: SeededRandom, world: World, one: WorldClass): Record<string, unknown> {
  return random.chance(0.5) ? {} : folderCondition(random, world, one);
}

function folderCondition(random: SeededRandom, world: World, one: WorldClass): Record<string, unknown> {
  return random.pick([
    { label: 'Label 1' },
    { secret: 'folder secret 1' },
    { owner: pointer('_User', random.pick(world.users).id) },
    { objectId: { $in: random.some(one.folderIds) } },
  ]);
}

function noteWhere(
  random: SeededRandom,
  world: World,
  one: WorldClass,
  depth: number,
): Record<string, unknown> {
  if (random.chance(0.3)) return {};
  const user = pointer('_User', random.pick(world.users).id);
  const simple = [
    { title: 'Title 1' },
    { Title: 'Title 1' },
    { SECRET: 'secret 1' },
    { sECRET: { $ne: 'secret 1' } },
    { in_folder: pointer(one.folderClass, random.pick(one.folderIds)) },
    { in_folder: { $inQuery: { className: one.folderClass, where: folderCondition(random, world, one) } } },
    { rank: { $gt: random.upTo(10) } },
    { secret: random.chance(0.5) ? 'secret 1' : { $exists: true } },
    { owner: user },
    { members: user },
    { 'meta_data.colour': 'red' },
    { folder: pointer(one.folderClass, random.pick(one.folderIds)) },
    { objectId: { $in: random.some(one.ids) } },
    { owner: { $inQuery: { className: '_User', where: { nick: { $exists: true } } } } },
    { folder: { $inQuery: { className: one.folderClass, where: folderCondition(random, world, one) } } },
    { folder: { $notInQuery: { className: one.folderClass, where: folderCondition(random, world, one) } } },
    { $relatedTo: { object: pointer(one.folderClass, random.pick(one.folderIds)), key: 'notes' } },
  ];
  const chosen = random.pick<Record<string, unknown>>(simple);
  const branch = () => noteWhere(random, world, one, depth - 1);
  if (depth === 0 || '$relatedTo' in chosen || !random.chance(0.4)) return chosen;
  return { [random.pick(['$or', '$and', '$nor'])]: [plain(branch()), plain(chosen)] };
}

/** Without a relation, which Parse Server follows only where it is the whole query. */
function plain(where: Record<string, unknown>): Record<string, unknown> {
  return '$relatedTo' in where ? { rank: { $gte: 3 } } : where;
}
