/**
 * A reader for the expressions that people write as answers, in LaTeX or plain text: numbers, names, + - * / ^,
 * implicit products, fractions, roots, the usual functions. It reads the cleaned text of clean.ts and gives up
 * (`undefined`) on anything else; depth is bounded, so hostile input cannot exhaust the stack.
 */
export type Expression =
  /** Decimal digits as written; `base` if a subscript names one. */
  | { readonly type: 'number'; readonly digits: string; readonly base?: string }
  | { readonly type: 'name'; readonly name: string }
  | {
      readonly type: 'binary';
      readonly operator: '+' | '-' | '*' | '/' | '^';
      readonly left: Expression;
      readonly right: Expression;
    }
  /** A function of the reader, or one that the answer itself names: `f(x)` calls `f()`. */
  | { readonly type: 'call'; readonly name: string; readonly arguments: readonly Expression[] };

const MAX_DEPTH = 60;

const functionNames = 'sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp'.split(' ');
const greek =
  'alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega infty ell'.split(
    ' ',
  );

/** Names that stand for a function if brackets follow; of other names that is a product. */
const functionLetters = new Set([
  ...'fgFG',
  ...['\\phi', '\\varphi', '\\psi', '\\sigma', '\\tau', '\\zeta', '\\Gamma'],
]);

class Unreadable extends Error {}

export function parseExpression(text: string): Expression | undefined {
  const reader = new Reader(text);
  try {
    return reader.whole();
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

/** The operands of a binary operation, the arguments of a call. */
export function partsOf(expression: Expression): readonly Expression[] {
  if (expression.type === 'binary') return [expression.left, expression.right];
  return expression.type === 'call' ? expression.arguments : [];
}

/** The expression and all expressions in it, from left to right. */
export function nodesOf(expression: Expression): Expression[] {
  const nodes: Expression[] = [];
  const left = [expression];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    nodes.push(node);
    left.push(...partsOf(node).toReversed());
  }
  return nodes;
}

const constantNames = new Set(['e', 'i', '\\pi']);

export const hasVariables = (expression: Expression): boolean =>
  nodesOf(expression).some((node) => node.type === 'name' && !constantNames.has(node.name));

/** Whether a call is one of a function that the answer names and nobody knows. */
export const isNamedFunction = (name: string): boolean => name.endsWith('()');

const number = (digits: string): Expression => ({ type: 'number', digits });
const call = (name: string, ...args: Expression[]): Expression => ({ type: 'call', name, arguments: args });
const binary = (operator: '+' | '-' | '*' | '/' | '^', left: Expression, right: Expression): Expression => ({
  type: 'binary',
  operator,
  left,
  right,
});

class Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** Whether the innermost group is one between bars, which the next bar closes. */
  #betweenBars = false;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Expression {
    const expression = this.#sum();
    if (this.#peek() !== '') throw new Unreadable();
    return expression;
  }

  #sum(): Expression {
    if (++this.#depth > MAX_DEPTH) throw new Unreadable();
    let left = this.#product();
    for (;;) {
      const next = this.#peek();
      if (next !== '+' && next !== '-') break;
      this.#at++;
      left = binary(next, left, this.#product());
    }
    this.#depth--;
    return left;
  }

  #product(): Expression {
    let left = this.#signed();
    for (;;) {
      const next = this.#peek();
      if (next === '*' || next === '/') {
        this.#at++;
        left = binary(next, left, this.#signed());
      } else if (this.#startsFactor(next)) left = binary('*', left, this.#power());
      else return left;
    }
  }

  #signed(): Expression {
    let negative = false;
    for (let next = this.#peek(); next === '-' || next === '+'; next = this.#peek()) {
      this.#at++;
      if (next === '-') negative = !negative;
    }
    const value = this.#power();
    return negative ? binary('*', number('-1'), value) : value;
  }

  #power(): Expression {
    let base = this.#primary();
    for (;;) {
      const next = this.#peek();
      if (next === '!') base = call('factorial', base);
      else if (next !== '^') return base;
      this.#at++;
      if (next === '^') return binary('^', base, this.#exponent());
    }
  }

  #exponent(): Expression {
    if (++this.#depth > MAX_DEPTH) throw new Unreadable();
    const next = this.#peek();
    let exponent: Expression;
    if (next === '-' || next === '+') {
      exponent = this.#signed();
    } else {
      exponent = this.#argument();
      if (this.#peek() === '^') {
        this.#at++;
        exponent = binary('^', exponent, this.#exponent());
      }
    }
    this.#depth--;
    return exponent;
  }

  /** Reads a factor that may follow another without an operator. Two numbers side by side are no product. */
  #startsFactor(next: string): boolean {
    if (next === '\\') return !/^\\(?:[|})]|rfloor|rceil)/.test(this.#text.slice(this.#at, this.#at + 7));
    return next === '|' ? !this.#betweenBars : /[A-Za-z([{]/.test(next);
  }

  #primary(): Expression {
    const next = this.#peek();
    if (/[\d.]/.test(next)) return this.#number();
    if (next === '(') return this.#group('(', ')');
    if (next === '[') return this.#group('[', ']');
    if (next === '{') return this.#group('{', '}');
    if (next === '|') return call('abs', this.#group('|', '|'));
    if (next === '\\') return this.#command();
    if (/[A-Za-z]/.test(next)) {
      this.#at++;
      return this.#named(next);
    }
    throw new Unreadable();
  }

  #named(letter: string): Expression {
    const subscript = this.#take(/\s*_\s*(?:\{([^{}]{1,20})\}|([A-Za-z\d]))/y);
    const primes =
      this.#take(/'+|\s*\^\s*(?:\{\s*(?:\\prime\s*){1,9}\}|\\prime(?![A-Za-z]))/y)?.[0].match(/'|\\p/g) ?? [];
    const index = subscript === undefined ? '' : `_${subscript[1] ?? subscript[2]}`;
    const name = letter + index + "'".repeat(primes.length);
    return this.#application(letter, name) ?? { type: 'name', name };
  }

  /** Reads f(x), f'(x), f^{-1}(x), or P(0) with any letter. */
  #application(letter: string, name: string): Expression | undefined {
    if (constantNames.has(letter)) return undefined; // \pi(3) is a product
    const isFunction = functionLetters.has(letter) || name.endsWith("'");
    if (!isFunction && !/^\s*\(\s*-?\s*\d+\s*\)(?!\s*\^)/.test(this.#text.slice(this.#at, this.#at + 30))) {
      return undefined;
    }
    const start = this.#at;
    const power: Expression[] = [];
    if (this.#peek() === '^') {
      this.#at++;
      power.push(this.#exponent());
    }
    if (this.#peek() === '(') return call(`${name}()`, ...power, this.#group('(', ')'));
    this.#at = start;
    return undefined;
  }

  #number(): Expression {
    const digits = this.#take(/\d+(?:\.\d*)?|\.\d+|\.(?=\s*\\)/y)?.[0].replace(/^\.$/, '0.');
    if (digits === undefined) throw new Unreadable();
    const base = this.#take(/\s*_\s*(?:\{\s*(\d{1,2})\s*\}|(\d{1,2}))/y);
    if (base !== undefined) return { type: 'number', digits, base: base[1] ?? base[2] ?? '' };
    if (digits.includes('.')) return this.#repeating(digits) ?? number(digits);
    // A whole number before a fraction of whole numbers is a mixed number, not a product.
    const mixed =
      this.#take(/\s*\\frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))/y) ??
      this.#take(/\s+(\d+)()\s*\/\s*(\d+)()/y);
    if (mixed === undefined) return number(digits);
    const fraction = binary('/', number(mixed[1] || mixed[2] || ''), number(mixed[3] || mixed[4] || ''));
    return binary('+', number(digits), fraction);
  }

  /** Reads the digits that repeat: 0.1\\overline{6} is 0.1 + 6/90. */
  #repeating(digits: string): Expression | undefined {
    const repeated = this.#take(/\s*\\(?:overline|bar|dot)\s*\{\s*(\d{1,30})\s*\}/y)?.[1];
    if (repeated === undefined) return undefined;
    const nines = '9'.repeat(repeated.length) + '0'.repeat(digits.length - digits.indexOf('.') - 1);
    return binary('+', number(digits), binary('/', number(repeated), number(nines)));
  }

  #command(): Expression {
    const name = this.#take(/\\([A-Za-z]+|\|)/y)?.[1];
    if (name === undefined) throw new Unreadable();
    if (name === 'frac') return binary('/', this.#argument(), this.#argument());
    if (name === 'binom') return call('binomial', this.#argument(), this.#argument());
    if (name === 'sqrt') {
      const degree = this.#peek() === '[' ? this.#group('[', ']') : number('2');
      return call('root', this.#argument(), degree);
    }
    if (name === 'lfloor') return call('floor', this.#until('\\rfloor'));
    if (name === 'lceil') return call('ceiling', this.#until('\\rceil'));
    if (functionNames.includes(name)) return this.#functionCall(name);
    if (greek.includes(name)) return this.#named(`\\${name}`);
    throw new Unreadable();
  }

  /** `\sin^2 2x` is (sin(2x))^2; without brackets the argument is the product that follows. */
  #functionCall(name: string): Expression {
    const inverse = /^(?:sin|cos|tan)$/.test(name) && this.#take(/\s*\^\s*(?:\{\s*-\s*1\s*\}|-1(?!\d))/y) !== undefined;
    let base: Expression | undefined;
    let exponent: Expression | undefined;
    for (let next = this.#peek(); next === '_' || next === '^'; next = this.#peek()) {
      this.#at++;
      if (next === '_') base = this.#argument();
      else exponent = this.#exponent();
    }
    const bracketed = ['(', '[', '{', '|'].includes(this.#peek());
    let argument = bracketed ? this.#primary() : this.#power();
    while (!bracketed) {
      const next = this.#peek();
      const anotherFunction = functionNames.some((other) => this.#text.startsWith(`\\${other}`, this.#at));
      if (!this.#startsFactor(next) || anotherFunction || next === '(') break;
      argument = binary('*', argument, this.#power());
    }
    const value =
      base === undefined
        ? call(inverse ? `arc${name}` : name, argument)
        : binary('/', call('ln', argument), call('ln', base));
    return exponent === undefined ? value : binary('^', value, exponent);
  }

  /** Reads the argument of `\frac`, `\sqrt` or `^`: a group, one digit, one letter or one command. */
  #argument(): Expression {
    const next = this.#peek();
    if (/\d/.test(next)) {
      this.#at++;
      return number(next);
    }
    if (++this.#depth > MAX_DEPTH) throw new Unreadable();
    const argument = this.#primary();
    this.#depth--;
    return argument;
  }

  #group(open: string, close: string): Expression {
    this.#at += open.length;
    return this.#until(close);
  }

  #until(close: string): Expression {
    const outside = this.#betweenBars;
    this.#betweenBars = close === '|';
    const inner = this.#sum();
    this.#betweenBars = outside;
    this.#peek();
    if (!this.#text.startsWith(close, this.#at)) throw new Unreadable();
    this.#at += close.length;
    return inner;
  }

  /** The next character that is not a space; '' at the end. */
  #peek(): string {
    while (this.#text[this.#at] === ' ') this.#at++;
    return this.#text[this.#at] ?? '';
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match;
  }
}
