/** The arguments of a filter, a function or a method, assigned to its parameters as Python assigns them. */
import type { Named, Value } from './values.js';
import { isNumber, typeName } from './values.js';

export class Arguments {
  readonly #function: string;
  /** All values by place, and all by name. */
  readonly rest: readonly Value[];
  readonly restNamed: Named;
  readonly #values = new Map<string, Value>();

  /**
   * @param parameters Undefined for a function that takes any values: `rest` has them
   * @throws Error for too many values, and for names that the function does not have
   */
  constructor(of: string, parameters: readonly string[] | undefined, args: readonly Value[], named: Named) {
    this.#function = of;
    this.rest = args;
    this.restNamed = named;
    if (parameters !== undefined) this.#assign(of, parameters, args, named);
  }

  #assign(of: string, parameters: readonly string[], args: readonly Value[], named: Named): void {
    if (args.length > parameters.length)
      throw new Error(`${of}() takes at most ${parameters.length} values, got ${args.length}`);
    for (const [i, value] of args.entries()) this.#values.set(parameters[i] ?? '', value);
    for (const [name, value] of named) {
      if (!parameters.includes(name) || this.#values.has(name))
        throw new Error(`${of}() got an unexpected value for '${name}'`);
      this.#values.set(name, value);
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  get(name: string): Value {
    return this.#values.get(name);
  }

  /** @throws Error if the value is missing */
  required(name: string): Value {
    if (!this.has(name)) throw new Error(`${this.#function}() expected a value for '${name}'`);
    return this.get(name);
  }

  #refuse(name: string, expected: string): never {
    throw new Error(`${this.#function}(): expected ${expected} as ${name}, got ${typeName(this.get(name))}`);
  }

  text(name: string, otherwise?: string): string {
    const value = this.get(name);
    if (!this.has(name) && otherwise !== undefined) return otherwise;
    return typeof value === 'string' ? value : this.#refuse(name, 'a text');
  }

  /** A text that may be missing or None. */
  optionalText(name: string): string | undefined {
    return this.get(name) === null || !this.has(name) ? undefined : this.text(name);
  }

  /** A truth value that may be missing. As in Python it can be a whole number. */
  flag(name: string): boolean {
    return this.integer(name, 0) !== 0;
  }

  /** A whole number that a number of JavaScript can hold. */
  integer(name: string, otherwise?: number): number {
    const value = this.get(name);
    if (!this.has(name) && otherwise !== undefined) return otherwise;
    if (typeof value === 'number' || !isNumber(value)) return this.#refuse(name, 'a whole number');
    return Number(value);
  }
}
