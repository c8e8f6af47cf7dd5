import type { Dice } from './dice.js';
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

export function askSomething(dice: Dice, world: World): Question {
  if (dice.chance(0.12)) return aboutUsers(dice, world);
  const one = dice.pick(world.classes);
  const folder = dice.chance(0.2);
  const className = folder ? one.folderClass : one.name;
  const roll = dice.next();
  const include =
    !folder && dice.chance(0.3)
      ? { include: dice.pick(['folder', 'in_folder', 'owner', 'in_folder.owner']) }
      : {};
  if (roll < 0.2)
    return { kind: 'get', className, objectId: dice.pick(folder ? one.folderIds : one.ids), ...include };
  const where = folder ? folderWhere(dice, world, one) : noteWhere(dice, world, one, 2);
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
    ...(dice.chance(0.4) && { order: dice.pick(order) }),
    ...(!folder &&
      one.mayAskKeys &&
      !('include' in include) &&
      dice.chance(0.3) && {
        keys: ['title', ...dice.some(['Title', 'secret', 'SECRET', 'rank', 'owner', 'meta_data'])],
      }),
  };
}

function aboutUsers(dice: Dice, world: World): Question {
  const className = '_User';
  if (dice.chance(0.4)) return { kind: 'get', className, objectId: dice.pick(world.users).id };
  const where = dice.chance(0.6)
    ? {}
    : { [dice.pick(['email', 'nick', 'username'])]: `${dice.pick(world.users).id}@example.com` };
  return dice.chance(0.2) ? { kind: 'count', className, where } : { kind: 'find', className, where };
}

function folderWhere(dice: Dice, world: World, one: WorldClass): Record<string, unknown> {
  return dice.chance(0.5) ? {} : folderCondition(dice, world, one);
}

function folderCondition(dice: Dice, world: World, one: WorldClass): Record<string, unknown> {
  return dice.pick([
    { label: 'Label 1' },
    { secret: 'folder secret 1' },
    { owner: pointer('_User', dice.pick(world.users).id) },
    { objectId: { $in: dice.some(one.folderIds) } },
  ]);
}

function noteWhere(dice: Dice, world: World, one: WorldClass, depth: number): Record<string, unknown> {
  if (dice.chance(0.3)) return {};
  const user = pointer('_User', dice.pick(world.users).id);
  const simple = [
    { title: 'Title 1' },
    { Title: 'Title 1' },
    { SECRET: 'secret 1' },
    { sECRET: { $ne: 'secret 1' } },
    { in_folder: pointer(one.folderClass, dice.pick(one.folderIds)) },
    { in_folder: { $inQuery: { className: one.folderClass, where: folderCondition(dice, world, one) } } },
    { rank: { $gt: dice.upTo(10) } },
    { secret: dice.chance(0.5) ? 'secret 1' : { $exists: true } },
    { owner: user },
    { members: user },
    { 'meta_data.colour': 'red' },
    { folder: pointer(one.folderClass, dice.pick(one.folderIds)) },
    { objectId: { $in: dice.some(one.ids) } },
    { owner: { $inQuery: { className: '_User', where: { nick: { $exists: true } } } } },
    { folder: { $inQuery: { className: one.folderClass, where: folderCondition(dice, world, one) } } },
    { folder: { $notInQuery: { className: one.folderClass, where: folderCondition(dice, world, one) } } },
    { $relatedTo: { object: pointer(one.folderClass, dice.pick(one.folderIds)), key: 'notes' } },
  ];
  const chosen = dice.pick<Record<string, unknown>>(simple);
  const branch = () => noteWhere(dice, world, one, depth - 1);
  if (depth === 0 || '$relatedTo' in chosen || !dice.chance(0.4)) return chosen;
  return { [dice.pick(['$or', '$and', '$nor'])]: [plain(branch()), plain(chosen)] };
}

/** Without a relation, which Parse Server follows only where it is the whole query. */
function plain(where: Record<string, unknown>): Record<string, unknown> {
  return '$relatedTo' in where ? { rank: { $gte: 3 } } : where;
}
