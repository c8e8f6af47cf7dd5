/** Rows that are asked for at the same moment, read as one: a set of changes is judged row by row, and its rows are not read one by one. */
export class JoinedReads<Row> {
  private readonly waiting = new Map<
    string,
    { readonly ids: Set<string>; readonly rows: Promise<ReadonlyMap<string, Row>> }
  >();

  /**
   * @param kind reads of one kind are joined. @param readAll reads the rows of some ids
   * @returns null: `readAll` found no such row
   */
  async read(
    kind: string,
    id: string,
    readAll: (ids: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
  ): Promise<Row | null> {
    let read = this.waiting.get(kind);
    if (!read) {
      const ids = new Set<string>();
      read = { ids, rows: this.readLater(kind, () => readAll([...ids])) };
      this.waiting.set(kind, read);
    }
    read.ids.add(id);
    return (await read.rows).get(id) ?? null;
  }

  /** After everybody who is about to ask has asked. */
  private async readLater<T>(kind: string, readAll: () => Promise<T>): Promise<T> {
    await new Promise((resolve) => setImmediate(resolve));
    this.waiting.delete(kind);
    return readAll();
  }
}
