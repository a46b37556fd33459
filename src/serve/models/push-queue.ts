/** Values that one side pushes while the other iterates over them. */
export class PushQueue<Value> implements AsyncIterable<Value> {
  readonly #values: Value[] = [];
  #over: { readonly error?: unknown } | undefined;
  #wake: () => void = () => {};

  push(value: Value): void {
    this.#values.push(value);
    this.#wake();
  }

  /** No further value will come. */
  end(): void {
    this.#over ??= {};
    this.#wake();
  }

  /** Ends the values with an error, which the iterating side receives after the last value. */
  fail(error: unknown): void {
    this.#over ??= { error };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void> {
    for (;;) {
      yield* this.#values.splice(0);
      if (this.#values.length > 0) continue;
      if (this.#over !== undefined) {
        if ('error' in this.#over) throw this.#over.error;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
