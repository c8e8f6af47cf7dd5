import type { AskedWorld } from './asked-of-world.js';
import type { Answer, AskedService, Request, WorldDatabase } from './asked-service.js';
import { AgentSight } from './sight.js';
import { CLASS_NAMES } from './vocabulary.js';
import type { World } from './world.js';
import { ITS_NAME } from './world-databases.js';
import { worldsApart } from './worlds-apart.js';

/** An answer that showed its agent something. */
export interface Violation {
  readonly request: Request;
  /** Marks and names that stand in the answer though the request did not say them. */
  readonly shows: readonly string[];
  /** What came back in the world of marks, and in the other one. */
  readonly answers: readonly [Answer, Answer];
  readonly asked: AskedWorld;
}

/** How a service is made over a database of its own. */
export interface Services {
  /** Of two servers: the databases of both worlds have one name. */
  readonly uris: readonly [string, string];
  /** Names a database that is not in use. */
  next(): string;
  /** The endpoint that makes vectors of texts. */
  readonly embeddings?: string;
  open(world: World, seed: unknown, database: WorldDatabase): Promise<AskedService>;
}

/** How often each tool and method ended how. */
export type Tally = Map<string, number>;

/**
 * Asks the same in two worlds that differ in nothing the agent may see, until an answer tells them apart. How the rows are read
 * differs as well, and changes nothing either.
 */
export async function violationIn(
  drawn: AskedWorld,
  { uris: [uri, other], next, open, embeddings }: Services,
  tally: Tally,
): Promise<Violation | null> {
  const name = next();
  const asked = JSON.parse(JSON.stringify(drawn).replaceAll(ITS_NAME, name)) as AskedWorld;
  const apart = worldsApart(asked.world);
  const traces = [...apart.traces, name];
  const marked = await open(asked.world, apart.marked, { uri, name, fastReads: true, embeddings });
  const ordinary = await open(asked.world, apart.ordinary, { uri: other, name, embeddings });
  try {
    const ofOthers = new Set<string>();
    for (const request of asked.earlier) {
      const { reply } = await marked.ask(request);
      for (const [name] of reply.matchAll(PSEUDONYM)) ofOthers.add(name);
    }
    // What the agent wrote it may read; what a set shows it has named before, or may name.
    let said = asked.world.proposed ? namesOfReachable(asked.world) : '';
    for (const request of asked.asked) {
      const given = await Promise.all([
        marked.ask({ ...request, params: request.marked ?? request.params }),
        ordinary.ask(request),
      ]);
      if (request.by) continue;
      if (asked.world.proposed || isWrite(request)) said += JSON.stringify(request.params);
      const [one, other] = given.map(withNumberedNames) as [Answer, Answer];
      noteIn(tally, request, one);
      const shared = [...given[0].reply.matchAll(PSEUDONYM)].map(([name]) => name);
      const shows = [
        ...shown(traces, said + JSON.stringify(request), one),
        ...shared.filter((name) => ofOthers.has(name)).map(() => 'a pseudonym of another tenant'),
      ];
      const differ = one.reply !== other.reply || one.audit !== other.audit;
      if (shows.length > 0 || differ) return { request, shows, answers: [one, other], asked };
    }
    for (const request of asked.coded) {
      const answers = [await marked.ask(request), await ordinary.ask(request)] as const;
      const ends = new Set(answers.map(endOf));
      const isAlone = asked.world.spread?.Orchard === 'apart' && !asked.world.agent.filteredByDefault;
      const shows = isAlone
        ? [...ends].slice(1).map(() => 'a code of another database')
        : answers.flatMap(({ reply }) => [...reply.matchAll(TELLS_OF_ROWS)].flat());
      for (const answer of answers) noteIn(tally, { ...request, method: 'coded' }, answer);
      if (shows.length > 0) return { request, shows, answers, asked };
    }
    return null;
  } finally {
    await Promise.all([marked.close(), ordinary.close()]);
  }
}

/**
 * A write that a unique index refuses is seen not to be done, and says nothing of rows that may be those of others. In a database
 * without such rows it is refused for the sake of its own.
 */
const TELLS_OF_ROWS = /unique|duplicate|already|E11000/gi;

const WRITES = new Set(['create_object', 'update_object']);
const isWrite = ({ params }: Request): boolean => WRITES.has(String(params['name']));

const namesOfReachable = (world: World): string => {
  const sight = new AgentSight(world);
  return CLASS_NAMES.filter((name) => sight.isReachable(name)).join(' ');
};

const PSEUDONYM = /h_[A-Za-z0-9_-]{22}/g;

/** Pseudonyms show which values are equal, by design; not which value any of them stands for. */
function withNumberedNames({ reply, audit }: Answer): Answer {
  const numbers = new Map<string, number>();
  const numbered = reply.replaceAll(PSEUDONYM, (name) => {
    if (!numbers.has(name)) numbers.set(name, numbers.size);
    return `h_${numbers.get(name)}`;
  });
  return { reply: numbered, audit };
}

/**
 * Without quoting, and without what stands for an object of a withheld class: its name and nothing else; and without the names of columns
 * that an approver is told not to be shown.
 */
const unquoted = (text: string) =>
  text
    .replaceAll(/\\+n/g, '')
    .replaceAll(/[\\"\s]/g, '')
    .replaceAll(/className:\w+,__redacted:true/g, '')
    .replaceAll(/withheld_from_you:\[[\w,]*\]/g, '');

/** @param text what the agent has said */
function shown(traces: readonly string[], text: string, { reply, audit }: Answer): string[] {
  const asked = text + text.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const told = unquoted(reply);
  const noted = unquoted(audit);
  return traces.filter(
    (trace) =>
      !asked.includes(trace) && (told.includes(trace) || (trace.includes('ZEKRET') && noted.includes(trace))),
  );
}

function endOf({ reply }: Answer): string {
  const [, code] = /"parse.error_code":"(\w+)"/.exec(reply) ?? [];
  return code ?? (reply.startsWith('{"error"') ? 'rpc error' : 'ok');
}

function noteIn(tally: Tally, { method, params }: Request, answer: Answer): void {
  const name = method === 'tools/call' ? String(params['name']) : method;
  const end = endOf(answer);
  tally.set(`${name} ${end}`, (tally.get(`${name} ${end}`) ?? 0) + 1);
}

const AROUND = 300;

/** In words, as short as it can be understood and repeated. */
export function described({ request, shows, answers, asked }: Violation): string {
  const { world } = asked;
  const text = JSON.stringify(request);
  const rules = Object.entries(world.classes).filter(
    ([name]) => text.includes(name) || shows.includes(name) || world.proposed,
  );
  const [one, other] = answers.map(({ reply, audit }) => reply + audit) as [string, string];
  let at = shows[0] === undefined ? 0 : one.indexOf(shows[0]);
  if (shows.length === 0) while (one[at] === other[at]) at += 1;
  const part = (whole: string) => whole.slice(Math.max(0, at - AROUND), at + AROUND);
  return [
    `asked  ${text}`,
    `agent  ${JSON.stringify(world.agent)}`,
    ...rules.map(([name, rule]) => `${name}  ${JSON.stringify(rule)}`),
    shows.length > 0
      ? `shows  ${shows.join(', ')}\n${part(one)}`
      : `one    ${part(one)}\nother  ${part(other)}`,
  ].join('\n');
}
