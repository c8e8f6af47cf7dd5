import type { RowsText } from '#data';

type Answer = Readonly<Record<string, unknown>>;

interface WrittenMember {
  readonly name: string;
  readonly rows: RowsText;
}

const written = new WeakMap<Answer, WrittenMember>();

/**
 * An answer whose last member is a list of rows that were written as they were read. Looked at, the member becomes an ordinary
 * list, and the answer one like any other.
 */
export function withWrittenRows(members: Answer, name: string, rows: RowsText): Answer {
  const answer: Record<string, unknown> = { ...members };
  const become = (value: unknown): void => {
    written.delete(answer);
    Object.defineProperty(answer, name, { value, enumerable: true, configurable: true, writable: true });
  };
  Object.defineProperty(answer, name, {
    enumerable: true,
    configurable: true,
    get: () => {
      const list: unknown = JSON.parse(`[${rows.compact.toString()}]`);
      become(list);
      return list;
    },
    set: become,
  });
  written.set(answer, { name, rows });
  return answer;
}

/** The answer as text, if its rows were written and nobody has looked at them. */
export function writtenAnswer(data: unknown): WrittenAnswer | null {
  if (data === null || typeof data !== 'object') return null;
  const member = written.get(data as Answer);
  // Members that were added later would stand behind the rows.
  if (!member || Object.keys(data).at(-1) !== member.name) return null;
  return new WrittenAnswer(data as Answer, member);
}

const NO_ROWS: readonly never[] = [];

/** A whole answer of which the rows are text already. */
export class WrittenAnswer {
  /** Bytes of the pretty-printed text. */
  readonly bytes: number;
  /** The texts up to the first row: of the pretty one, the inside of a JSON string. */
  private readonly head: { readonly pretty: string; readonly compact: string };
  private readonly end: { readonly pretty: string; readonly compact: string };

  constructor(
    answer: Answer,
    private readonly member: WrittenMember,
  ) {
    const { name, rows } = member;
    const empty: Record<string, unknown> = {};
    for (const key of Object.keys(answer)) empty[key] = key === name ? NO_ROWS : answer[key];
    const pretty = JSON.stringify(empty, null, 2).slice(0, -']\n}'.length);
    const inside = JSON.stringify(pretty).slice(1, -1);
    const end = rows.compact.length > 0 ? '\n  ]\n}' : ']\n}';
    this.head = { pretty: inside, compact: JSON.stringify(empty).slice(0, -']}'.length) };
    this.end = { pretty: JSON.stringify(end).slice(1, -1), compact: ']}' };
    this.bytes = Buffer.byteLength(pretty) + rows.prettyBytes + end.length;
  }

  /** The pretty-printed text. */
  get text(): string {
    return JSON.parse(
      `"${this.head.pretty}${this.member.rows.pretty.toString()}${this.end.pretty}"`,
    ) as string;
  }

  /** The same as data. */
  get data(): Answer {
    return JSON.parse(
      `${this.head.compact}${this.member.rows.compact.toString()}${this.end.compact}`,
    ) as Answer;
  }

  /** The pretty-printed text as a JSON string. */
  get quoted(): readonly (string | Buffer)[] {
    return ['"', this.head.pretty, this.member.rows.pretty, this.end.pretty, '"'];
  }

  /** The data as JSON. */
  get json(): readonly (string | Buffer)[] {
    return [this.head.compact, this.member.rows.compact, this.end.compact];
  }
}
