/** Plays a parsed template: jinja2's scopes, loops and macros on Python's values. */
import type { Budget } from './budget.js';
import { applyFilter, groupAttribute, type Host } from './filters.js';
import { hiddenNames } from './hidden-names.js';
import { CHANGING, methodOf, partOfNumber, refuseUnplayed } from './methods.js';
import type { Expression, Inputs, MacroNode, Statement, Target } from './nodes.js';
import { calculate, contains, sliced } from './operators.js';
import { applyTest } from './tests.js';
import {
  Callable,
  compare,
  dictOf,
  equals,
  isAttributes,
  isList,
  isMap,
  isNumber,
  iterate,
  keyIn,
  Markup,
  type Named,
  plain,
  points,
  repr,
  Sequence,
  Tuple,
  textOf,
  truthy,
  typeName,
  type Value,
} from './values.js';

/** The variables of a block; those of the blocks around it are read through it. */
class Scope {
  readonly #values = new Map<string, Value>();

  readonly outer: Scope | undefined;
  /** Names that have no value here until they are set, whatever the scopes around say. */
  readonly #hidden: ReadonlySet<string> | undefined;
  /** Whether it sees through what the scopes around it hide: a block reads the variables that are set. */
  readonly #seesHidden: boolean;

  /** @param body The statements that the scope is for */
  constructor(outer?: Scope, body?: readonly Statement[], seesHidden = false) {
    this.outer = outer;
    this.#hidden = body === undefined ? undefined : hiddenNames(body);
    this.#seesHidden = seesHidden;
  }

  has(name: string): boolean {
    return this.#values.has(name) || this.outer?.has(name) === true;
  }

  get(name: string): Value {
    let seesHidden = false;
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.outer) {
      if (scope.#values.has(name)) return scope.#values.get(name);
      if (!seesHidden && scope.#hidden?.has(name) === true) return undefined;
      seesHidden ||= scope.#seesHidden;
    }
    return undefined;
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }
}

type End = 'break' | 'continue' | undefined;

/** The most rounds that blocks, macros and loops may lie in each other. */
const DEPTH = 200;

export class Interpreter {
  readonly #budget: Budget;
  readonly #globals = new Scope();
  /** The variables of the template itself. */
  #root = new Scope();
  readonly #host: Host;
  #depth = 0;

  constructor(budget: Budget, globals: Readonly<Record<string, Value>>) {
    this.#budget = budget;
    for (const [name, value] of Object.entries(globals)) this.#globals.set(name, value);
    this.#host = {
      budget,
      item: (value, key) => this.#item(value, key),
      attribute: (value, name) => this.#attribute(value, name),
      filter: (name, value, args, named) => applyFilter(this.#host, name, value, args, named),
      test: (name, value, args) => applyTest(name, value, args, budget),
    };
  }

  /** The output. @throws Error when the template raises one, or does too much */
  run(template: readonly Statement[]): string {
    this.#root = new Scope(this.#globals, template);
    return this.#output(template, this.#root);
  }

  #output(body: readonly Statement[], scope: Scope): string {
    const parts: string[] = [];
    this.#play(body, scope, parts);
    this.#budget.length(parts.reduce((sum, { length }) => sum + length, 0));
    return parts.join('');
  }

  #write(text: string, output: string[]): void {
    this.#budget.length(text.length);
    output.push(text);
  }

  #play(body: readonly Statement[], scope: Scope, output: string[]): End {
    if (++this.#depth > DEPTH) throw new Error(`it has more than ${DEPTH} blocks and calls in each other`);
    for (const statement of body) {
      const end = this.#statement(statement, scope, output);
      if (end !== undefined) {
        this.#depth--;
        return end;
      }
    }
    this.#depth--;
    return undefined;
  }

  #statement(statement: Statement, scope: Scope, output: string[]): End {
    this.#budget.spend(1);
    switch (statement.type) {
      case 'data':
        return void this.#write(statement.text, output);
      case 'print':
        return void this.#write(textOf(this.#evaluate(statement.value, scope), this.#budget), output);
      case 'set':
        return void this.#assign(statement.target, this.#evaluate(statement.value, scope), scope);
      case 'choice':
        return this.#play(
          truthy(this.#evaluate(statement.test, scope)) ? statement.body : statement.otherwise,
          scope,
          output,
        );
      case 'for':
        return this.#loop(statement, scope, output, this.#plain(statement.items, scope), 0);
      case 'with': {
        const inner = new Scope(scope, statement.body);
        for (const [target, value] of statement.values) this.#assign(target, this.#evaluate(value, scope), inner);
        return this.#play(statement.body, inner, output);
      }
      case 'block':
        return this.#play(
          statement.body,
          new Scope(statement.scoped ? scope : this.#root, statement.body, true),
          output,
        );
      case 'macro':
        return void scope.set(statement.name, this.#macro(statement.macro, scope));
      case 'callBlock': {
        const { callee, inputs } = statement.call;
        const caller = this.#macro(statement.caller, scope);
        return void this.#write(textOf(this.#call(callee, inputs, scope, caller), this.#budget), output);
      }
      case 'break':
      case 'continue':
        return statement.type;
    }
  }

  #assign(target: Target, value: Value, scope: Scope): void {
    if (target.type === 'name') {
      scope.set(target.name, value);
      return;
    }
    if (target.type === 'member') {
      const object = scope.get(target.object);
      if (!isAttributes(object) || object.assign === undefined)
        throw new Error(`cannot assign attribute on non-namespace object '${target.object}'`);
      object.assign(target.name, value);
      return;
    }
    const items = iterate(value, this.#budget);
    if (items.length !== target.targets.length)
      throw new Error(`expected ${target.targets.length} values to unpack, got ${items.length}`);
    for (const [i, each] of target.targets.entries()) this.#assign(each, items[i], scope);
  }

  /** Returns how its `else` ends, which may end the loop around it. */
  #loop(node: Statement & { type: 'for' }, scope: Scope, output: string[], value: Value, depth: number): End {
    let items = iterate(value, this.#budget);
    const { test } = node;
    if (test !== undefined) {
      items = items.filter((item) => {
        const inner = new Scope(scope);
        this.#assign(node.target, item, inner);
        return truthy(this.#evaluate(test, inner));
      });
    }
    const again = new Callable('loop', ([inner]) => {
      if (!node.recursive) throw new Error('the loop must have the word recursive to be called');
      const parts: string[] = [];
      this.#loop(node, scope, parts, inner, depth + 1);
      return parts.join('');
    });
    const last: { changed?: readonly Value[] } = {};
    // As in jinja2 `else` is played if no round came to its end.
    let isElse = true;
    for (const [i, item] of items.entries()) {
      const inner = new Scope(scope, node.body);
      inner.set('loop', this.#loopValue(items, i, depth, again, last));
      this.#assign(node.target, item, inner);
      const end = this.#play(node.body, inner, output);
      if (end === 'break') break;
      if (end === undefined) isElse = false;
    }
    return isElse ? this.#play(node.otherwise, new Scope(scope, node.otherwise), output) : undefined;
  }

  #loopValue(items: readonly Value[], i: number, depth: number, call: Callable, last: { changed?: readonly Value[] }) {
    const budget = this.#budget;
    const attributes: Readonly<Record<string, () => Value>> = {
      index: () => BigInt(i + 1),
      index0: () => BigInt(i),
      revindex: () => BigInt(items.length - i),
      revindex0: () => BigInt(items.length - i - 1),
      first: () => i === 0,
      last: () => i === items.length - 1,
      length: () => BigInt(items.length),
      depth: () => BigInt(depth + 1),
      depth0: () => BigInt(depth),
      previtem: () => items[i - 1],
      nextitem: () => items[i + 1],
      cycle: () =>
        new Callable('cycle', (values) => {
          if (values.length === 0) throw new Error('no items for cycling given');
          return values[i % values.length];
        }),
      changed: () =>
        new Callable('changed', (values) => {
          const isSame = last.changed !== undefined && equals(last.changed, values, budget);
          last.changed = values;
          return !isSame;
        }),
    };
    return { attribute: (name: string) => (Object.hasOwn(attributes, name) ? attributes[name]?.() : undefined), call };
  }

  #macro(macro: MacroNode, scope: Scope): Callable {
    const label = `the macro '${macro.name ?? 'caller'}'`;
    const names = macro.parameters.map(({ name }) => name);
    const used = usedNames(macro);
    const reads = (name: string) => used.has(name) && !names.includes(name);
    if (used.has('caller') && macro.parameters.some(({ name, value }) => name === 'caller' && value === undefined))
      throw new Error(`${label} has a parameter 'caller' without a default`);
    const call: Callable['call'] = (args, named) => {
      const inner = new Scope(scope, macro.body);
      const more = new Map<Value, Value>(named);
      const missing = macro.parameters.filter(({ name }, i) => {
        const isGiven = i < args.length || more.has(name);
        inner.set(name, i < args.length ? args[i] : more.get(name));
        if (i >= args.length) more.delete(name);
        return !isGiven;
      });
      if (reads('caller')) {
        inner.set('caller', more.get('caller') ?? undefined);
        more.delete('caller');
      }
      const varargs = args.slice(names.length);
      if (reads('kwargs')) inner.set('kwargs', more);
      else if (more.size > 0) throw new Error(`${label} takes no value '${textOf([...more.keys()][0], this.#budget)}'`);
      if (reads('varargs')) inner.set('varargs', new Tuple(varargs));
      else if (varargs.length > 0) throw new Error(`${label} takes at most ${names.length} values, got ${args.length}`);
      // A default reads the parameters before it; those after it that are not given have no value yet.
      for (const { name, value } of missing) if (value !== undefined) inner.set(name, this.#evaluate(value, inner));
      return this.#output(macro.body, inner);
    };
    const facts = { name: macro.name ?? null, arguments: new Tuple(names) };
    const catches = { catch_kwargs: reads('kwargs'), catch_varargs: reads('varargs'), caller: used.has('caller') };
    return new Callable(label, call, { ...facts, ...catches }, true);
  }

  #plain(node: Expression, scope: Scope): Value {
    return plain(this.#evaluate(node, scope));
  }

  #evaluate(node: Expression, scope: Scope): Value {
    this.#budget.spend(1);
    switch (node.type) {
      case 'constant':
        return node.value;
      case 'name':
        if (node.name === 'self' && !scope.has('self')) throw new Error("drmas does not play 'self'");
        return scope.get(node.name);
      case 'list':
        return node.items.map((item) => this.#kept(item, scope));
      case 'tuple':
        return new Tuple(node.items.map((item) => this.#kept(item, scope)));
      case 'dict':
        return dictOf(node.entries.map(([key, value]) => [this.#plain(key, scope), this.#kept(value, scope)]));
      case 'attribute': {
        const object = this.#evaluate(node.object, scope);
        return object instanceof Markup
          ? methodOfMarkup(this.#attribute(object.text, node.name))
          : this.#attribute(object, node.name);
      }
      case 'item': {
        const object = this.#evaluate(node.object, scope);
        return likeObject(object, this.#item(plain(object), this.#plain(node.key, scope)));
      }
      case 'slice': {
        const object = this.#evaluate(node.object, scope);
        return likeObject(object, this.#slice(plain(object), node.bounds, scope));
      }
      case 'call':
        return this.#call(node.callee, node.inputs, scope);
      case 'filter': {
        const value = this.#evaluate(node.object, scope);
        const { args, named } = this.#inputs(node.inputs, scope);
        return applyFilter(this.#host, node.name, value, args, named);
      }
      case 'test': {
        const value = this.#evaluate(node.object, scope);
        return applyTest(node.name, value, this.#inputs(node.inputs, scope).args, this.#budget);
      }
      case 'not':
        return !truthy(this.#evaluate(node.object, scope));
      case 'negative':
      case 'positive': {
        const value = this.#evaluate(node.object, scope);
        if (!isNumber(value)) throw new Error(`bad operand type for unary -: '${typeName(value)}'`);
        const number = typeof value === 'boolean' ? BigInt(value) : value;
        return node.type === 'negative' ? -number : number;
      }
      case 'and':
      case 'or': {
        const left = this.#evaluate(node.left, scope);
        return truthy(left) === (node.type === 'or') ? left : this.#evaluate(node.right, scope);
      }
      case 'binary':
        return calculate(
          node.operator,
          this.#evaluate(node.left, scope),
          this.#evaluate(node.right, scope),
          this.#budget,
        );
      case 'concat': {
        const parts = node.parts.map((part) => textOf(this.#evaluate(part, scope), this.#budget));
        this.#budget.length(parts.reduce((sum, { length }) => sum + length, 0));
        return parts.join('');
      }
      case 'compare': {
        let left = this.#plain(node.first, scope);
        for (const [operator, each] of node.rest) {
          const right = this.#plain(each, scope);
          if (!this.#compares(operator, left, right)) return false;
          left = right;
        }
        return true;
      }
      case 'if': {
        if (truthy(this.#evaluate(node.test, scope))) return this.#evaluate(node.value, scope);
        return node.otherwise === undefined ? undefined : this.#evaluate(node.otherwise, scope);
      }
      case 'body':
        return this.#output(node.body, new Scope(scope, node.body));
    }
  }

  /** @throws Error for markup: in a list of Python it is no text, and is not shown as one */
  #kept(node: Expression, scope: Scope): Value {
    const value = this.#evaluate(node, scope);
    if (value instanceof Markup)
      throw new Error("drmas does not keep what 'safe' or 'escape' returns in a list or dict");
    return value;
  }

  #compares(operator: string, left: Value, right: Value): boolean {
    switch (operator) {
      case '==':
        return equals(left, right, this.#budget);
      case '!=':
        return !equals(left, right, this.#budget);
      case 'in':
        return contains(right, left, this.#budget);
      case 'not in':
        return !contains(right, left, this.#budget);
      default: {
        const order = compare(left, right, this.#budget);
        return (operator.startsWith('<') ? order < 0 : order > 0) || (operator.endsWith('=') && order === 0);
      }
    }
  }

  #inputs(
    inputs: Inputs,
    scope: Scope,
    takesMarkup = false,
  ): { readonly args: readonly Value[]; readonly named: Named } {
    const read = (node: Expression) => (takesMarkup ? this.#evaluate(node, scope) : this.#plain(node, scope));
    const args = inputs.args.map(read);
    const named = new Map(inputs.named.map(([name, each]) => [name, read(each)]));
    if (inputs.spread !== undefined) args.push(...iterate(this.#evaluate(inputs.spread, scope), this.#budget));
    if (inputs.spreadNamed !== undefined) {
      const more = this.#evaluate(inputs.spreadNamed, scope);
      if (!isMap(more)) throw new Error(`expected a mapping after **, got ${typeName(more)}`);
      for (const [name, value] of more) named.set(textOf(name, this.#budget), value);
    }
    return { args, named };
  }

  #call(callee: Expression, inputs: Inputs, scope: Scope, caller?: Callable): Value {
    const found = this.#evaluate(callee, scope);
    const callable = isAttributes(found) ? found.call : found;
    const takesMarkup = callable instanceof Callable && callable.takesMarkup;
    const { args, named } = this.#inputs(inputs, scope, takesMarkup);
    if (!(callable instanceof Callable)) {
      const name = callee.type === 'name' || callee.type === 'attribute' ? `'${callee.name}'` : 'the value';
      throw new Error(
        found === undefined ? `${name} is undefined` : `${name} is of type ${typeName(found)}: it is not callable`,
      );
    }
    return callable.call(args, caller === undefined ? named : new Map([...named, ['caller', caller]]));
  }

  /** `value.name`: a method comes before a key of the same name. */
  #attribute(value: Value, name: string): Value {
    if (value === undefined) throw new Error(`an undefined value has no attribute '${name}'`);
    if (name.startsWith('__')) return undefined;
    if (isAttributes(value)) return value.attribute(name);
    if (value instanceof Callable) return Object.hasOwn(value.facts, name) ? value.facts[name] : undefined;
    const method = this.#method(value, name);
    if (method !== undefined) return method;
    refuseUnplayed(value, name);
    if (isNumber(value)) return partOfNumber(value, name);
    if ((isMap(value) || isList(value)) && CHANGING.has(name)) return undefined;
    return isMap(value) ? value.get(name) : groupAttribute(value, name);
  }

  #method(value: Value, name: string): Callable | undefined {
    const reach = (object: Value, key: string, isAttribute: boolean) =>
      isAttribute ? this.#attribute(object, key) : this.#item(object, /^\d+$/.test(key) ? BigInt(key) : key);
    return methodOf(value, name, this.#budget, reach);
  }

  /** `value[key]`: a key comes before a method of the same name. */
  #item(value: Value, key: Value): Value {
    if (value === undefined) throw new Error(`an undefined value has no item ${repr(key, this.#budget)}`);
    if (isMap(value)) {
      const isKey = !isMap(key) && !isList(key) && !(key instanceof Tuple);
      const stored = isKey ? keyIn(value, key) : undefined;
      if (isKey && value.has(stored)) return value.get(stored);
    } else if (typeof key === 'bigint' || typeof key === 'boolean') return this.#index(value, Number(key));
    return typeof key === 'string' ? this.#attribute(value, key) : undefined;
  }

  #index(value: Value, index: number): Value {
    if (typeof value === 'string') this.#budget.spend(value.length / 64);
    const items = typeof value === 'string' ? points(value) : value instanceof Tuple ? value.items : rangeOrList(value);
    return items?.at(index < 0 && -index > items.length ? items.length : index);
  }

  #slice(value: Value, bounds: readonly (Expression | undefined)[], scope: Scope): Value {
    const numbers = bounds.map((bound) => {
      const number = bound === undefined ? null : this.#evaluate(bound, scope);
      if (number === null) return undefined;
      if (typeof number === 'number' || !isNumber(number))
        throw new Error('slice indices must be whole numbers or None');
      return Number(number);
    });
    if (typeof value === 'string') return this.#budget.text(sliced(points(this.#budget.text(value)), numbers).join(''));
    const items = value instanceof Tuple ? value.items : rangeOrList(value);
    if (items === undefined) throw new Error(`'${typeName(value)}' object cannot be sliced`);
    this.#budget.entries(items.length);
    const part = sliced(items, numbers);
    return value instanceof Tuple ? new Tuple(part) : value instanceof Sequence ? new Sequence('range', part) : part;
  }
}

/** A part of markup is markup. */
const likeObject = (object: Value, part: Value): Value =>
  object instanceof Markup && typeof part === 'string' ? new Markup(part) : part;

/** Methods of markup that return markup. */
const WRAPPED = new Set([
  ...['capitalize', 'casefold', 'center', 'expandtabs', 'ljust', 'lower', 'lstrip', 'removeprefix', 'removesuffix'],
  ...['rjust', 'rstrip', 'strip', 'swapcase', 'title', 'upper', 'zfill'],
]);
/** Methods of markup that write other texts in HTML, or return lists of markup. */
const UNPLAYED_OF_MARKUP = new Set([
  ...['format', 'format_map', 'join', 'partition', 'replace', 'rpartition', 'rsplit', 'split', 'splitlines'],
]);

/** @throws Error for a method that drmas does not play on markup */
function methodOfMarkup(method: Value): Value {
  if (!(method instanceof Callable)) return method;
  const { name, call } = method;
  if (UNPLAYED_OF_MARKUP.has(name)) throw new Error(`drmas does not play '${name}' of what 'safe' or 'escape' returns`);
  if (!WRAPPED.has(name)) return method;
  return new Callable(name, (args, named) => {
    const result = call(args, named);
    return typeof result === 'string' ? new Markup(result) : result;
  });
}

function rangeOrList(value: Value): readonly Value[] | undefined {
  if (value instanceof Sequence) return value.kind === 'range' ? value.take() : undefined;
  return isList(value) ? value : undefined;
}

const used = new WeakMap<MacroNode, ReadonlySet<string>>();

/** Whether a macro reads `varargs` and `kwargs`. */
function usedNames(macro: MacroNode): ReadonlySet<string> {
  const known = used.get(macro);
  if (known !== undefined) return known;
  const names = new Set<string>();
  const look = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return;
    if ('type' in part && part.type === 'name' && 'name' in part) names.add(String(part.name));
    for (const each of Object.values(part)) look(each);
  };
  look(macro.body);
  used.set(macro, names);
  return names;
}
