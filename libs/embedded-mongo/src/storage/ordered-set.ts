interface Leaf<T> {
  readonly leaf: true;
  owner: object;
  items: T[];
}

interface Branch<T> {
  readonly leaf: false;
  owner: object;
  /** `lowest[i]` is not above any item of `children[i]`. */
  lowest: T[];
  children: Node<T>[];
  size: number;
}

type Node<T> = Leaf<T> | Branch<T>;

/** Compares the sought position with an item: negative when the item lies before it. */
export type Probe<T> = (item: T) => number;

const MAX_FANOUT = 64;

const measureSize = <T>(node: Node<T>): number => (node.leaf ? node.items.length : node.size);

/**
 * A sorted set as a B+ tree that counts its items: insert, remove, search and rank cost O(log n).
 * `snapshot()` is O(1): nodes are shared and copied on the first write after it, so a snapshot never changes.
 */
export class OrderedSet<T> {
  private root: Node<T>;
  private owner: object = {};

  constructor(private readonly compare: (a: T, b: T) => number) {
    this.root = { leaf: true, owner: this.owner, items: [] };
  }

  get size(): number {
    return measureSize(this.root);
  }

  /** An independent set with the same items. */
  snapshot(): OrderedSet<T> {
    const copy = new OrderedSet<T>(this.compare);
    copy.root = this.root;
    // Neither side owns the shared nodes any more, so each copies what it changes.
    this.owner = {};
    return copy;
  }

  /** Adds an item; an item that compares equal is replaced. */
  insert(item: T): void {
    const split = this.insertInto(
      this.own(this.root, (node) => (this.root = node)),
      item,
    );
    if (split === undefined) return;
    const left = this.root;
    this.root = {
      leaf: false,
      owner: this.owner,
      lowest: [this.findLowest(left), this.findLowest(split)],
      children: [left, split],
      size: measureSize(left) + measureSize(split),
    };
  }

  /** Removes the item that compares equal; false when there is none. */
  remove(item: T): boolean {
    if (this.find((other) => this.compare(other, item)) === undefined) return false;
    this.removeFrom(
      this.own(this.root, (node) => (this.root = node)),
      item,
    );
    while (!this.root.leaf && this.root.children.length === 1) this.root = this.root.children[0] as Node<T>;
    if (!this.root.leaf && this.root.children.length === 0)
      this.root = { leaf: true, owner: this.owner, items: [] };
    return true;
  }

  /** The first item whose probe is zero. */
  find(probe: Probe<T>): T | undefined {
    const item = this.at(this.rank(probe));
    return item !== undefined && probe(item) === 0 ? item : undefined;
  }

  /** How many items lie before the probe's position. */
  rank(probe: Probe<T>): number {
    let before = 0;
    let node = this.root;
    while (!node.leaf) {
      const index = Math.max(0, firstNotBefore(node.lowest, probe) - 1);
      for (let i = 0; i < index; i += 1) before += measureSize(node.children[i] as Node<T>);
      node = node.children[index] as Node<T>;
    }
    return before + firstNotBefore(node.items, probe);
  }

  /** The item at a rank. */
  at(rank: number): T | undefined {
    if (rank < 0 || rank >= this.size) return undefined;
    const place = this.place(rank);
    return place.items[place.offset];
  }

  /** The items of ranks `from` (inclusive) to `to` (exclusive), backwards when `reverse`. Do not write meanwhile. */
  *range(from = 0, to = this.size, reverse = false): Generator<T> {
    const low = Math.max(0, from);
    const high = Math.min(this.size, to);
    if (reverse) {
      for (let rank = high - 1; rank >= low;) {
        const { items, offset } = this.place(rank);
        for (let i = offset; i >= 0 && rank >= low; i -= 1, rank -= 1) yield items[i] as T;
      }
      return;
    }
    for (let rank = low; rank < high;) {
      const { items, offset } = this.place(rank);
      for (let i = offset; i < items.length && rank < high; i += 1, rank += 1) yield items[i] as T;
    }
  }

  private place(rank: number): { items: T[]; offset: number } {
    let node = this.root;
    let offset = rank;
    while (!node.leaf) {
      let index = 0;
      let size = measureSize(node.children[0] as Node<T>);
      while (offset >= size) {
        offset -= size;
        index += 1;
        size = measureSize(node.children[index] as Node<T>);
      }
      node = node.children[index] as Node<T>;
    }
    return { items: node.items, offset };
  }

  private own(node: Node<T>, adopt: (copy: Node<T>) => void): Node<T> {
    if (node.owner === this.owner) return node;
    const copy: Node<T> = node.leaf
      ? { leaf: true, owner: this.owner, items: node.items.slice() }
      : { ...node, owner: this.owner, lowest: node.lowest.slice(), children: node.children.slice() };
    adopt(copy);
    return copy;
  }

  private insertInto(node: Node<T>, item: T): Node<T> | undefined {
    if (node.leaf) return this.insertIntoLeaf(node, item);
    const probe: Probe<T> = (other) => this.compare(other, item);
    const index = Math.max(0, lastNotAfter(node.lowest, probe));
    const child = this.own(node.children[index] as Node<T>, (copy) => (node.children[index] = copy));
    if (probe(node.lowest[index] as T) > 0) node.lowest[index] = item;
    const before = measureSize(child);
    const split = this.insertInto(child, item);
    if (split === undefined) {
      node.size += measureSize(child) - before;
      return undefined;
    }
    node.size += 1;
    node.children.splice(index + 1, 0, split);
    node.lowest.splice(index + 1, 0, this.findLowest(split));
    if (node.children.length <= MAX_FANOUT) return undefined;
    const children = node.children.splice(MAX_FANOUT / 2);
    const lowest = node.lowest.splice(MAX_FANOUT / 2);
    const size = children.reduce((sum, one) => sum + measureSize(one), 0);
    node.size -= size;
    return { leaf: false, owner: this.owner, lowest, children, size };
  }

  private insertIntoLeaf(leaf: Leaf<T>, item: T): Node<T> | undefined {
    const at = firstNotBefore(leaf.items, (other) => this.compare(other, item));
    const present = leaf.items[at];
    if (at < leaf.items.length && this.compare(present as T, item) === 0) {
      leaf.items[at] = item;
      return undefined;
    }
    leaf.items.splice(at, 0, item);
    if (leaf.items.length <= MAX_FANOUT) return undefined;
    // Ascending loads fill their leaves; anything else splits in the middle.
    const keep = at === leaf.items.length - 1 ? MAX_FANOUT : MAX_FANOUT / 2;
    return { leaf: true, owner: this.owner, items: leaf.items.splice(keep) };
  }

  private removeFrom(node: Node<T>, item: T): void {
    const probe: Probe<T> = (other) => this.compare(other, item);
    if (node.leaf) {
      node.items.splice(firstNotBefore(node.items, probe), 1);
      return;
    }
    const index = Math.max(0, lastNotAfter(node.lowest, probe));
    const child = this.own(node.children[index] as Node<T>, (copy) => (node.children[index] = copy));
    this.removeFrom(child, item);
    node.size -= 1;
    if (measureSize(child) > 0) return;
    node.children.splice(index, 1);
    node.lowest.splice(index, 1);
  }

  private findLowest(node: Node<T>): T {
    return (node.leaf ? node.items[0] : node.lowest[0]) as T;
  }
}

/** The first index whose item does not lie before the probe. */
function firstNotBefore<T>(items: readonly T[], probe: Probe<T>): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (probe(items[middle] as T) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last index whose item does not lie after the probe; -1 when all do. */
const lastNotAfter = <T>(items: readonly T[], probe: Probe<T>): number =>
  firstNotBefore(items, (item) => (probe(item) <= 0 ? -1 : 0)) - 1;
