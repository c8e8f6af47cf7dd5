/** A set as a request names it: the last one that an answer to the agent has named, or to the one that proposes beside it. */
export const MINE = '<my set>';
export const OTHERS = '<set of another>';

const SET = /\\?"change_set\\?":\\?"([\w-]{20})\\?"/g;
const MADE_ROW = /\b[0-9a-f]{24}\b/g;
/** Members that differ between any two calls. */
const ITS_OWN = /(\\?"(?:digest|id|approval_id|\w+_at|args_digest|object_digest)\\?":)\\?"[^"]*"/g;

/** What services make up by themselves, under names that are the same in two services that are asked the same. */
export class NamedSets {
  private readonly names = new Map<string, string>();
  private readonly last = new Map<string, string>();

  /** @param place `MINE` or `OTHERS` */
  note(reply: string, place: string): void {
    for (const [, id = ''] of reply.matchAll(SET)) this.last.set(place, id);
  }

  /** The id of a set that a request names. */
  find(place: unknown): string {
    return this.last.get(String(place)) ?? 'none';
  }

  /** With the ids of the sets that are named in it. */
  resolve<T>(params: T): T {
    const text = JSON.stringify(params);
    const named = [MINE, OTHERS].reduce((left, place) => left.replaceAll(place, this.find(place)), text);
    return JSON.parse(named) as T;
  }

  /** Without what only this service says. */
  hide(text: string): string {
    const withSets = text.replaceAll(SET, (member, id: string) => member.replace(id, this.name(id, 'set')));
    const known = [...this.names].reduce((left, [id, name]) => left.replaceAll(id, name), withSets);
    return known.replaceAll(MADE_ROW, (id) => this.name(id, 'row')).replaceAll(ITS_OWN, '$1"its own"');
  }

  private name(id: string, kind: string): string {
    const known = this.names.get(id) ?? `<${kind} ${this.names.size}>`;
    this.names.set(id, known);
    return known;
  }
}
