import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { FILTER_OPERATORS, REFUSED_IN_FILTERS } from '../../../libs/policy/src/pipeline/operators.js';
import { assertCannotFail } from '../../../libs/policy/src/pipeline/total-filter.js';
import { kindsOfRequests, kindsOfWorlds, placesOf } from '../../properties/asked-kinds.js';
import { type AskedWorld, askedOfSets, askedWorlds } from '../../properties/asked-of-world.js';
import { OPERATIONS } from '../../properties/asked-service.js';
import { filterExpressionsIn } from '../../properties/filter-expressions.js';
import { isHolding } from '../../properties/held-objects.js';
import { AgentSight } from '../../properties/sight.js';
import { described, type Services, type Tally, violationIn } from '../../properties/compare-worlds.js';
import { openService } from '../../properties/service-in-process.js';
import { openHttpService } from '../../properties/service-over-http.js';
import { worldsApart } from '../../properties/worlds-apart.js';
import {
  plainWorlds,
  spreadWorlds,
  worldsOfTwoDatabases,
  worldsOfTwoTenants,
} from '../../properties/world.js';
import {
  CLASS_NAMES,
  type ClassName,
  columnNames,
  COLUMNS,
  OWN_CLASSES,
} from '../../properties/vocabulary.js';
import { ITS_NAME, listStored } from '../../properties/world-databases.js';
import { startEmbeddings } from '../../support/embeddings-server.js';

/** `npm run properties` asks in hundreds of worlds, and names a seed to repeat. */
const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const ASKED = 40;
const MINUTE = 60_000;

let servers: readonly [EmbeddedMongo, EmbeddedMongo];
let embeddings: Awaited<ReturnType<typeof startEmbeddings>>;
let made = 0;
beforeAll(async () => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  servers = await Promise.all([EmbeddedMongo.start(), EmbeddedMongo.start()]);
  embeddings = await startEmbeddings();
});
afterAll(async () => {
  vi.restoreAllMocks();
  Logger.overrideLogger(false);
  await Promise.all((servers ?? []).map((server) => server.close()));
  await embeddings?.stop();
});

/** A world that refuses everything would prove nothing: each of these must have been answered. */
const ANSWERED = ['query_class', 'aggregate', 'group_by', 'export_data', 'atlas_text_search'].map(
  (tool) => `${tool} ok`,
);
const ANSWERED_ABOUT_SETS = [
  'create_object',
  'update_object',
  'delete_object',
  'show_changes',
  'list_changes',
  'refresh_changes',
  'discard_changes',
  'resources/read',
  ...Object.values(OPERATIONS),
].map((asked) => `${asked} ok`);
const ANSWERED_TO_TWO_TENANTS = ['create_object ok', 'semantic_search ok', 'find_similar ok', 'coded ok'];

/** Some worlds permit no export: so many more are asked at most until each kind was answered. */
const MORE_WORLDS = 60;

/** Asks in `least` worlds, and in more of the same seed until each of the kinds was answered. */
async function violationsIn(
  worlds: fc.Arbitrary<AskedWorld>,
  { seed, least, answered }: { seed: number; least: number; answered: readonly string[] },
  open: Services['open'],
) {
  const tally: Tally = new Map();
  const services = {
    uris: [servers[0].uri, servers[1].uri] as const,
    next: () => `world${(made += 1)}`,
    open,
    embeddings: embeddings.endpoint,
  };
  const found: string[] = [];
  const missing = () => answered.filter((kind) => !tally.has(kind));
  const drawn = fc.sample(worlds, { seed, numRuns: least + MORE_WORLDS });
  for (const [index, one] of drawn.entries()) {
    if (index >= least && missing().length === 0) break;
    const violation = await violationIn(one, services, tally);
    if (violation) found.push(described(violation));
  }
  return { found: found.join('\n\n'), tally, missing: missing() };
}

describe(`what an agent may not see, in ${WORLDS} random worlds (seed ${SEED})`, () => {
  it(
    'changes no byte of an answer or an audit record, and stands in none',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const drawn = { seed: SEED, least: WORLDS, answered: ANSWERED };
      const { found, missing } = await violationsIn(askedWorlds(ASKED), drawn, openService);
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither where one person writes in two tenants, under the same keys and into unique indexes, and where rows of others are nearest',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const least = Math.max(4, Math.ceil(WORLDS / 4));
      const drawn = { seed: SEED + 3, least, answered: ANSWERED_TO_TWO_TENANTS };
      const { found, missing } = await violationsIn(
        askedWorlds(ASKED, worldsOfTwoTenants),
        drawn,
        openService,
      );
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither in change sets: in those it proposes, and in those of others that it decides about and takes back',
    { timeout: 2 * MINUTE + WORLDS * 15_000 },
    async () => {
      const drawn = {
        seed: SEED + 4,
        least: Math.max(4, Math.ceil(WORLDS / 2)),
        answered: ANSWERED_ABOUT_SETS,
      };
      const { found, missing } = await violationsIn(askedOfSets, drawn, openService);
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither over plain collections, which are made and answered',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const least = Math.max(2, Math.ceil(WORLDS / 2));
      const drawn = { seed: SEED + 2, least, answered: ANSWERED };
      expect(fc.sample(plainWorlds, 100).every(({ storage }) => storage === 'plain')).toBe(true);
      const { found, missing } = await violationsIn(askedWorlds(ASKED, plainWorlds), drawn, openService);
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither over several databases, one of them for each tenant',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const drawn = { seed: SEED + 4, least: WORLDS, answered: ANSWERED };
      const { found, missing } = await violationsIn(askedWorlds(ASKED, spreadWorlds), drawn, openService);
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither where one person writes in two tenants, of which each has its database',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const least = Math.max(4, Math.ceil(WORLDS / 4));
      const drawn = { seed: SEED + 5, least, answered: ANSWERED_TO_TWO_TENANTS };
      const { found, missing } = await violationsIn(
        askedWorlds(ASKED, worldsOfTwoDatabases),
        drawn,
        openService,
      );
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );

  it(
    'does neither over HTTP, where columns of the class that most is asked of are masked',
    { timeout: MINUTE + WORLDS * 10_000 },
    async () => {
      const masked = askedWorlds(ASKED).filter(
        ({ world }) => Object.keys(world.classes.Orchard.masks).length > 0,
      );
      const alone = masked.map(({ world, ...rest }) => ({
        ...rest,
        world: { ...world, agent: { ...world.agent, child: null } },
      }));
      const least = Math.max(2, Math.ceil(WORLDS / 6));
      const drawn = { seed: SEED + 1, least, answered: ['query_class ok'] };
      const { found, missing } = await violationsIn(alone, drawn, openHttpService);
      expect(found).toBe('');
      expect(missing).toEqual([]);
    },
  );
});

/** Tools that need more than rows, or change more: they have attacks of their own. */
const NOT_ASKED = /^(call_method|(create|delete)_class)$/;

const OPERATORS = (
  '$or $nor $ne $in $nin $all $exists $regex $inQuery $notInQuery $select $dontSelect $relatedTo $nearSphere $geoWithin ' +
  '$within $expr $getField $let $map $lookup $unionWith $graphLookup $facet $group $project $addFields $unset $sort ' +
  '$search $searchMeta $vectorSearch $text $meta $replaceRoot $redact $bucket $bucketAuto $sortByCount $setWindowFields $unwind'
).split(' ');

/** By member of a world: choices that must each occur. */
const RULES: Readonly<Record<string, string>> = {
  '.agent.posture': 'master session client user role',
  '.agent.permissions': 'readonly write admin',
  '.agent.tenantId': 'acme ACME null',
  '.agent.masterAtlas': 'true false',
  '.agent.child': 'null',
  '.agent.child.filtered': 'some none',
  '.agent.tools': 'null',
  '.agent.tools.only': 'some',
  '.agent.classes.except': 'some',
  '.agent.filtered': 'some none',
  '.agent.filteredByDefault': 'true false',
  '.classes.hidden': 'no always exceptMaster',
  '.classes.fields': 'null some',
  '.classes.joinFields': 'null some',
  '.classes.largeFields': 'some none',
  '.classes.masks.form': 'drop deny mask hash ending',
  '.classes.masks.openToAdmin': 'true false',
  '.classes.masks.member': 'null tone',
  '.classes.canonical': 'true false',
  '.classes.tenant': 'null',
  '.classes.tenant.bypass': 'true false',
  '.classes.searchable': 'null',
  '.classes.searchable.tenant': 'true false',
  '.classes.find': 'unset open nobody authenticated role owner',
  '.classes.get': 'unset open nobody authenticated role owner',
  '.classes.hiddenFrom': 'null',
  '.classes.hiddenFrom.everyone': 'null some',
  '.classes.hiddenFrom.role': 'null some',
  '.classes.hiddenFrom.owner': 'null some',
  '.rows.acl': 'none public caller role other nobody',
  '.rows.absent': 'true false',
  '.rows.values': 'null value',
  '.rows.others': 'null value',
  '.switches.concealHidden': 'true false',
  '.switches.refuseUnlisted': 'true false',
  '.switches.refuseCollscan': 'true false',
  '.switches.includeSourceProvenance': 'true false',
};

/** By what stands around the column, and by the operator under it. */
const COMPARING = [
  'order,key,field,value_field,where,where $gt,where $in,where $regex,where $select,localField,foreignField',
  'connectFromField,connectToField,startWith,restrictSearchWithMatch,$match,$match $gt,$match $type,$sort,$sortByCount',
  '$unwind,_id,$min,$max,groupBy,let,$eq,$gt,$in',
].flatMap((line) => line.split(','));

describe('random worlds and requests', () => {
  const asked = fc.sample(askedWorlds(ASKED), { seed: 1, numRuns: 400 });
  const ofSets = fc.sample(askedOfSets, { seed: 1, numRuns: 100 });

  it('hold every argument of every tool that reads, every format and every operator', () => {
    const kinds = kindsOfRequests([...asked, ...ofSets].flatMap((one) => one.asked));
    const tools = BUILT_IN_TOOLS.flatMap((tool) => toolDeclarations(tool.prototype as object));
    const expected = tools.flatMap(({ definition: { name, inputSchema } }) => {
      const { properties } = inputSchema as { properties: Record<string, { enum?: readonly string[] }> };
      if (NOT_ASKED.test(name)) return [];
      return [
        name,
        ...Object.keys(properties).map((argument) => `${name} ${argument}`),
        ...(properties['format']?.enum ?? []).map((format) => `${name} format ${format}`),
      ];
    });
    expect(expected.length).toBeGreaterThan(60);
    expect([...expected, ...OPERATORS].filter((kind) => !kinds.has(kind))).toEqual([]);
  });

  it('hold expressions in filters, those that can fail and those that cannot, with every operator of these', () => {
    const expressions = asked.flatMap((one) =>
      one.asked.flatMap(({ params }) => filterExpressionsIn(params)),
    );
    const standing = expressions.filter((expression) => {
      try {
        assertCannotFail({ $expr: expression });
        return true;
      } catch {
        return false;
      }
    });
    expect(standing.length).toBeGreaterThan(100);
    expect(expressions.length - standing.length).toBeGreaterThan(20);
    const text = JSON.stringify(standing);
    expect(Object.keys(FILTER_OPERATORS).filter((operator) => !text.includes(`"${operator}"`))).toEqual([]);
    const refused = JSON.stringify(expressions);
    const partial = Object.keys(REFUSED_IN_FILTERS).filter((operator) => refused.includes(`"${operator}"`));
    expect(partial.length).toBeGreaterThan(10);
  });

  it('compare columns that hold objects of others wherever a database compares', () => {
    const columns = [COLUMNS.Orchard, COLUMNS.Crate].flat().filter(isHolding);
    const places = placesOf(
      columns.map(({ name }) => name),
      asked.flatMap((one) => one.asked),
    );
    expect(COMPARING.filter((place) => !places.has(place))).toEqual([]);
    const held = asked.filter(({ world }) => {
      const sight = new AgentSight(world);
      return CLASS_NAMES.some((name) => sight.isWithheld(name)) && sight.permits('Orchard', 'find');
    });
    expect(held.length).toBeGreaterThan(asked.length / 5);
  });

  it('hold columns of every spelling, and in each class some that only their spelling tells apart', () => {
    const alike = (name: string) => name.replaceAll('_', '').toLowerCase();
    for (const className of CLASS_NAMES) {
      const names = columnNames(className);
      expect([className, new Set(names.map(alike)).size < names.length]).toEqual([className, true]);
    }
    const all = CLASS_NAMES.flatMap(columnNames);
    for (const form of [/^[a-z]+(_[a-z]+)+$/, /^[a-z]+[A-Z]/, /^[A-Z_]+$/, /^[A-Z][a-z]/, /\d/])
      expect(all).toContainEqual(expect.stringMatching(form));
  });

  it('hold writes of one person in two tenants under one key, codes that rows of others hold, and a crowd of such rows', () => {
    const drawn = fc.sample(askedWorlds(ASKED, worldsOfTwoTenants), { seed: 1, numRuns: 10 });
    for (const { world, asked: own, earlier, coded } of drawn) {
      const keys = (requests: readonly { params: Record<string, unknown>; tenant?: string }[]) =>
        requests.flatMap(
          ({ params }) => JSON.stringify(params).match(/"idempotency_key":"the-[^"]+"/g) ?? [],
        );
      expect(earlier.map(({ tenant }) => tenant)).not.toContain(world.agent.tenantId);
      expect(keys(own)).toEqual([...keys(earlier), ...keys(earlier)]);
      const held = (secret: boolean) => {
        const apart = worldsApart(world);
        const seed = (secret ? apart.marked : apart.ordinary) as {
          objects: { Orchard: { orcCode: string }[] };
        };
        return seed.objects.Orchard.map(({ orcCode }) => orcCode);
      };
      expect(held(true).length).toBeGreaterThan(200 + held(false).length - 1);
      expect(new Set(held(true)).size).toBe(held(true).length);
      const hidden = held(false).filter((code) => !held(true).includes(code));
      const text = JSON.stringify(coded);
      expect(hidden.filter((code) => !text.includes(code))).toEqual([]);
    }
  });

  it('hold classes of every database, rows of every tenant in its own, and requests that name the others', () => {
    const drawn = fc.sample(askedWorlds(ASKED, spreadWorlds), { seed: 1, numRuns: 100 });
    const kinds = kindsOfWorlds(drawn.map(({ world }) => world));
    const expected = ['.spread first', '.spread second', '.spread apart', '.storage plain'];
    const tenants = ['acme', 'globex', 'null'].map((tenant) => `.agent.tenantId ${tenant}`);
    expect([...expected, ...tenants].filter((kind) => !kinds.has(kind))).toEqual([]);
    expect(drawn.some(({ world }) => world.storage === undefined)).toBe(true);
    const rowsIn = new Map<string, number>();
    for (const { world } of drawn) {
      const { objects } = worldsApart(world).marked as { objects: Record<string, Record<string, unknown>[]> };
      const stored = listStored(world, CLASS_NAMES, 'w');
      for (const [className, rows] of Object.entries(objects)) {
        const holders = stored.filter(({ classes }) => classes.includes(className as ClassName));
        for (const row of rows) {
          const [place, ...others] = holders.filter(({ has }) => has(className as ClassName, row));
          expect([place === undefined, others]).toEqual([false, []]);
          rowsIn.set(String(place?.name), (rowsIn.get(String(place?.name)) ?? 0) + 1);
        }
      }
    }
    expect([...rowsIn.keys()].sort()).toEqual(['w', 'w_of_acme', 'w_of_globex', 'w_of_nobody', 'w_second']);
    expect(Math.min(...rowsIn.values())).toBeGreaterThan(20);
    const requests = JSON.stringify(drawn.flatMap((one) => one.asked));
    for (const end of ['second', 'of_acme', 'of_globex', 'of_nobody'])
      for (const around of ['"db":"', '"class_name":"', '"uri":"parse://'])
        expect(requests).toContain(`${around}${ITS_NAME}_${end}`);
  });

  it('hold sets of the agent and of another, over rows and columns that it may see and that it may not', () => {
    const of = { rows: new Set<string>(), columns: new Set<string>() };
    for (const { world, asked: requests } of ofSets) {
      const sight = new AgentSight(world);
      for (const { method, params, by = 'itself', marked } of requests) {
        const { arguments: args } = params as {
          arguments?: { class_name?: string; object_id?: string; fields?: object };
        };
        const { class_name: given, object_id: id, fields = {} } = args ?? {};
        const name = OWN_CLASSES.find((own) => own === given);
        if (method !== 'tools/call' || name === undefined || id === undefined) continue;
        const index = Number(id.at(-1));
        const row = world.rows[name][index];
        if (!row) throw new Error(id);
        of.rows.add(`${by} ${sight.sees(name, row, index) ? 'seen' : 'unseen'}`);
        for (const column of Object.keys(fields))
          of.columns.add(`${by} ${sight.of(name, row, index, column)}${marked ? ', marked' : ''}`);
      }
    }
    const both = (words: readonly string[]) =>
      ['itself', 'proposer', 'chief'].flatMap((by) => words.map((word) => `${by} ${word}`)).toSorted();
    expect([...of.rows].toSorted()).toEqual(both(['seen', 'unseen']));
    expect([...of.columns].toSorted()).toEqual(expect.arrayContaining(both(['all', 'nothing'])));
    expect([...of.columns]).toContain('chief nothing, marked');
    const storages = new Set(ofSets.map(({ world }) => world.storage));
    expect(storages).toEqual(new Set([undefined, 'plain']));
  });

  it('hold texts that look like pointers', () => {
    const texts = JSON.stringify(asked.map(({ world }) => worldsApart(world).ordinary));
    for (const text of ['US$5', 'Vault$id']) expect(texts).toContain(`"${text}"`);
  });

  it('hold every rule in each of its forms', () => {
    const kinds = kindsOfWorlds(asked.map(({ world }) => world));
    const expected = Object.entries(RULES).flatMap(([member, forms]) =>
      forms.split(' ').map((form) => `${member} ${form}`),
    );
    expect(expected.filter((kind) => !kinds.has(kind))).toEqual([]);
  });
});
