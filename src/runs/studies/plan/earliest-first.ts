/** Items by due time, the earliest first. Among equal times the first added comes first. */
export class EarliestFirst<Item> {
  readonly #heap: { readonly due: number; readonly order: number; readonly item: Item }[] = [];
  #added = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The due time of the first item; infinity if there is none. */
  get earliest(): number {
    return this.#heap[0]?.due ?? Number.POSITIVE_INFINITY;
  }

  add(due: number, item: Item): void {
    this.#heap.push({ due, order: this.#added++, item });
    for (let at = this.#heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** Removes and returns the first item. @throws RangeError if there is none */
  take(): Item {
    const first = this.#heap[0];
    if (first === undefined) throw new RangeError('there is nothing to take');
    this.#swap(0, this.#heap.length - 1);
    this.#heap.pop();
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (left < this.size && this.#isBefore(left, least)) least = left;
      if (right < this.size && this.#isBefore(right, least)) least = right;
      if (least === at) return first.item;
      this.#swap(at, least);
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return false;
    return one.due < other.due || (one.due === other.due && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
