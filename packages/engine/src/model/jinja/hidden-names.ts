/**
 * The names that a block of a template hides: jinja2 looks a name up in the context only where a block reads it before
 * it sets it. A name that a block first sets has no value in the loops and macros inside of it before that.
 */
import type { Expression, MacroNode, Statement, Target } from './nodes.js';

const hidden = new WeakMap<readonly Statement[], ReadonlySet<string>>();

/** The hidden names of a block, by its statements. */
export const hiddenNames = (body: readonly Statement[]): ReadonlySet<string> | undefined => hidden.get(body);

/** Finds the hidden names of a template and of the blocks in it. */
export function findHiddenNames(template: readonly Statement[]): void {
  new Block(template, [], new Set());
}

class Block {
  readonly #known: Set<string>;
  readonly #hidden = new Set<string>();
  readonly #inner: (() => void)[] = [];

  /** @param outer The names that the blocks around it read or set at any place */
  constructor(body: readonly Statement[], parameters: readonly string[], outer: ReadonlySet<string>) {
    this.#known = new Set([...outer, ...parameters]);
    this.#statements(body, false);
    if (this.#hidden.size > 0) hidden.set(body, this.#hidden);
    for (const look of this.#inner) look();
  }

  #inside(body: readonly Statement[], parameters: readonly string[] = []): void {
    this.#inner.push(() => void new Block(body, parameters, this.#known));
  }

  #statements(body: readonly Statement[], isBranch: boolean): void {
    for (const statement of body) this.#statement(statement, isBranch);
  }

  /** @param isBranch Whether it may not be played: then it hides nothing */
  #statement(statement: Statement, isBranch: boolean): void {
    switch (statement.type) {
      case 'print':
        this.#read(statement.value);
        break;
      case 'set': {
        // jinja2 sets the name of a block before it reads what the block names.
        const isBlock = this.#holdsBody(statement.value);
        if (isBlock) this.#set(statement.target, isBranch);
        this.#read(statement.value);
        if (!isBlock) this.#set(statement.target, isBranch);
        break;
      }
      case 'choice':
        this.#read(statement.test);
        this.#statements(statement.body, true);
        this.#statements(statement.otherwise, true);
        break;
      case 'for':
        this.#read(statement.items);
        this.#inside(statement.body, [...namesOf(statement.target), 'loop']);
        this.#inside(statement.otherwise);
        break;
      case 'with': {
        for (const [, value] of statement.values) this.#read(value);
        const names = statement.values.flatMap(([target]) => namesOf(target));
        this.#inside(statement.body, names);
        break;
      }
      case 'block':
        this.#inner.push(() => void new Block(statement.body, [], new Set()));
        break;
      case 'macro':
        this.#set({ type: 'name', name: statement.name }, isBranch);
        this.#macro(statement.macro);
        break;
      case 'callBlock':
        this.#read(statement.call);
        this.#macro(statement.caller);
        break;
      default:
    }
  }

  #macro({ parameters, body }: MacroNode): void {
    const names = parameters.map(({ name }) => name);
    for (const { value } of parameters) for (const name of value === undefined ? [] : namesIn(value)) names.push(name);
    this.#inside(body, [...names, 'caller', 'kwargs', 'varargs']);
  }

  #set(target: Target, isBranch: boolean): void {
    if (target.type === 'member') this.#known.add(target.object);
    for (const name of namesOf(target)) {
      if (!isBranch && !this.#known.has(name)) this.#hidden.add(name);
      this.#known.add(name);
    }
  }

  #holdsBody(expression: Expression): boolean {
    if (expression.type === 'filter') return this.#holdsBody(expression.object);
    return expression.type === 'body';
  }

  #read(expression: Expression): void {
    for (const name of namesIn(expression, (body) => this.#inside(body))) this.#known.add(name);
  }
}

/** The names that a target sets. */
function namesOf(target: Target): string[] {
  if (target.type === 'targets') return target.targets.flatMap(namesOf);
  return target.type === 'name' ? [target.name] : [];
}

/** The names that an expression reads. @param inside Takes the body of a block that the expression filters */
function namesIn(expression: Expression, inside?: (body: readonly Statement[]) => void): string[] {
  const names: string[] = [];
  const look = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return;
    const { type, name, body } = part as { type?: unknown; name?: string; body?: readonly Statement[] };
    if (type === 'name' && name !== undefined) names.push(name);
    else if (type === 'body' && body !== undefined) inside?.(body);
    else for (const each of Object.values(part)) look(each);
  };
  look(expression);
  return names;
}
