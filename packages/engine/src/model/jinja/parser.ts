/** Reads a template into its parts, by the grammar of jinja2 3.1 with the extensions that transformers adds. */
import { findHiddenNames } from './hidden-names.js';
import { type Token, type TokenType, tokenize } from './lexer.js';
import type { Expression, Inputs, MacroNode, Statement, Target } from './nodes.js';

const COMPARISONS = ['==', '!=', '<', '<=', '>', '>='];
const CONSTANTS: ReadonlyMap<string, null | boolean> = new Map<string, null | boolean>([
  ...(['true', 'True'] as const).map((name) => [name, true] as const),
  ...(['false', 'False'] as const).map((name) => [name, false] as const),
  ...(['none', 'None'] as const).map((name) => [name, null] as const),
]);

/** The names that a target assigns to. */
function namesOf(target: Target): string[] {
  if (target.type === 'targets') return target.targets.flatMap(namesOf);
  return target.type === 'name' ? [target.name] : [];
}

/** @throws Error naming the line of what cannot be read */
export function parse(source: string): readonly Statement[] {
  const template = new Parser(tokenize(source)).template();
  findHiddenNames(template);
  return template;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  /** Whether `break` and `continue` have a loop to end. */
  #inLoop = false;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  template(): readonly Statement[] {
    const body = this.#body([]);
    if (this.#at < this.#tokens.length) this.#fail();
    return body;
  }

  get #token(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #is(type: TokenType, ...texts: string[]): boolean {
    const token = this.#token;
    return token?.type === type && (texts.length === 0 || texts.includes(token.text));
  }

  #take(type: TokenType, ...texts: string[]): string | undefined {
    if (!this.#is(type, ...texts)) return undefined;
    const text = this.#token?.text;
    this.#at++;
    return text;
  }

  #expect(type: TokenType, ...texts: string[]): string {
    return this.#take(type, ...texts) ?? this.#fail(texts.length > 0 ? texts.join(' or ') : type);
  }

  #fail(expected?: string): never {
    const token = this.#token;
    const found = token === undefined ? 'the end' : `'${token.text || token.type}' in line ${token.line}`;
    throw new Error(`unexpected ${found}${expected === undefined ? '' : `, expected ${expected}`}`);
  }

  /** Statements up to a block tag with one of these names, or the end of the template. */
  #body(ends: readonly string[]): Statement[] {
    const body: Statement[] = [];
    for (let token = this.#token; token !== undefined; token = this.#token) {
      this.#at++;
      if (token.type === 'data') body.push({ type: 'data', text: token.text });
      else if (token.type === 'print') {
        body.push({ type: 'print', value: this.#tuple() });
        this.#expect('printEnd');
      } else if (this.#is('name', ...ends) && ends.length > 0) {
        return body;
      } else {
        body.push(this.#statement(this.#expect('name')));
        this.#expect('blockEnd');
      }
    }
    if (ends.length > 0) this.#fail(ends.join(' or '));
    return body;
  }

  /** Reads a part of the template in which `break` ends a loop or does not. */
  #within<T>(isLoop: boolean, read: () => T): T {
    const outside = this.#inLoop;
    this.#inLoop = isLoop;
    const result = read();
    this.#inLoop = outside;
    return result;
  }

  /** The body of a block, whose end tag is taken up to its closing bracket. */
  #blockBody(end: string): Statement[] {
    this.#expect('blockEnd');
    const body = this.#body([end]);
    this.#expect('name', end);
    return body;
  }

  #statement(name: string): Statement {
    switch (name) {
      case 'if':
        return this.#choice();
      case 'for':
        return this.#loop();
      case 'set':
        return this.#set();
      case 'macro': {
        const macro = this.#expect('name');
        return { type: 'macro', name: macro, macro: this.#macro(macro, 'endmacro') };
      }
      case 'call': {
        const parameters = this.#is('operator', '(') ? this.#parameters() : [];
        const call = this.#unary();
        if (call.type !== 'call') return this.#fail('a call');
        return {
          type: 'callBlock',
          call,
          caller: { name: null, parameters, body: this.#within(false, () => this.#blockBody('endcall')) },
        };
      }
      case 'filter':
        return { type: 'print', value: this.#captured('endfilter', (body) => this.#filters(this.#filter(body))) };
      case 'block': {
        const block = this.#expect('name');
        const scoped = this.#take('name', 'scoped') !== undefined;
        this.#expect('blockEnd');
        const body = this.#within(false, () => this.#body(['endblock']));
        this.#expect('name', 'endblock');
        this.#take('name', block);
        return { type: 'block', body, scoped };
      }
      case 'generation':
        return { type: 'with', values: [], body: this.#within(false, () => this.#blockBody('endgeneration')) };
      case 'with': {
        const values: (readonly [Target, Expression])[] = [];
        while (!this.#is('blockEnd')) {
          if (values.length > 0) this.#expect('operator', ',');
          const target = this.#target();
          this.#expect('operator', '=');
          values.push([target, this.#expression()]);
        }
        return { type: 'with', values, body: this.#blockBody('endwith') };
      }
      case 'print': {
        const values = [this.#expression()];
        while (this.#take('operator', ',') !== undefined) values.push(this.#expression());
        return {
          type: 'print',
          value: values.length === 1 && values[0] ? values[0] : { type: 'concat', parts: values },
        };
      }
      case 'break':
      case 'continue':
        if (!this.#inLoop) throw new Error(`'${name}' stands in no loop, or in a block that a loop cannot leave`);
        return { type: name };
      default:
        throw new Error(`the statement '${name}' is not supported`);
    }
  }

  #choice(): Statement {
    const test = this.#tuple(false);
    this.#expect('blockEnd');
    const body = this.#body(['elif', 'else', 'endif']);
    const end = this.#expect('name', 'elif', 'else', 'endif');
    if (end === 'elif') return { type: 'choice', test, body, otherwise: [this.#choice()] };
    return { type: 'choice', test, body, otherwise: end === 'else' ? this.#blockBody('endif') : [] };
  }

  #loop(): Statement {
    const target = this.#target();
    if (namesOf(target).includes('loop')) throw new Error("a loop cannot assign to 'loop'");
    this.#expect('name', 'in');
    const items = this.#tuple(false, 'recursive');
    const test = this.#take('name', 'if') === undefined ? {} : { test: this.#expression() };
    const recursive = this.#take('name', 'recursive') !== undefined;
    this.#expect('blockEnd');
    const body = this.#within(true, () => this.#body(['else', 'endfor']));
    const hasElse = this.#expect('name', 'else', 'endfor') === 'else';
    const otherwise = hasElse ? this.#within(this.#inLoop && !recursive, () => this.#blockBody('endfor')) : [];
    return { type: 'for', target, items, ...test, recursive, body, otherwise };
  }

  #set(): Statement {
    const target = this.#target();
    if (this.#take('operator', '=') !== undefined) return { type: 'set', target, value: this.#tuple() };
    return { type: 'set', target, value: this.#captured('endset', (body) => this.#filters(body)) };
  }

  /** The output of a block, after the filters in its first tag. */
  #captured(end: string, filters: (body: Expression) => Expression): Expression {
    const body: Statement[] = [];
    const value = filters({ type: 'body', body });
    body.push(...this.#within(false, () => this.#blockBody(end)));
    return value;
  }

  #macro(name: string, end: string): MacroNode {
    return { name, parameters: this.#parameters(), body: this.#within(false, () => this.#blockBody(end)) };
  }

  #parameters(): MacroNode['parameters'] {
    this.#expect('operator', '(');
    const parameters: { readonly name: string; readonly value?: Expression }[] = [];
    while (this.#take('operator', ')') === undefined) {
      if (parameters.length > 0) this.#expect('operator', ',');
      const name = this.#expect('name');
      const value = this.#take('operator', '=') === undefined ? {} : { value: this.#expression() };
      if (!('value' in value) && parameters.at(-1)?.value !== undefined)
        this.#fail('a default, as the parameter before has');
      if (parameters.some((each) => each.name === name)) throw new Error(`two parameters have the name '${name}'`);
      parameters.push({ name, ...value });
    }
    return parameters;
  }

  /** One or more targets of an assignment. */
  #target(): Target {
    const targets: Target[] = [];
    let isTuple = false;
    while (!this.#is('operator', '=') && !this.#is('name', 'in') && !this.#is('blockEnd')) {
      targets.push(this.#oneTarget());
      if (this.#take('operator', ',') === undefined) break;
      if (this.#is('name', 'in')) this.#fail('a name');
      isTuple = true;
    }
    const [only] = targets;
    if (only === undefined) return this.#fail('a name');
    return isTuple ? { type: 'targets', targets } : only;
  }

  #oneTarget(): Target {
    if (this.#take('operator', '(') !== undefined) {
      const targets: Target[] = [];
      while (this.#take('operator', ')') === undefined) {
        if (targets.length > 0) this.#expect('operator', ',');
        targets.push(this.#oneTarget());
      }
      return { type: 'targets', targets };
    }
    const name = this.#expect('name');
    if (this.#take('operator', '.') === undefined) return { type: 'name', name };
    return { type: 'member', object: name, name: this.#expect('name') };
  }

  /** An expression, or a tuple of expressions without brackets around it. */
  #tuple(withChoice = true, end?: string): Expression {
    const items: Expression[] = [];
    let isTuple = false;
    while (!this.#endsTuple(end)) {
      items.push(withChoice ? this.#expression() : this.#or());
      if (this.#take('operator', ',') === undefined) break;
      isTuple = true;
    }
    const [only] = items;
    if (only === undefined) return this.#fail('an expression');
    return isTuple ? { type: 'tuple', items } : only;
  }

  #endsTuple(end?: string): boolean {
    if (this.#is('printEnd') || this.#is('blockEnd') || this.#is('operator', ')')) return true;
    return end !== undefined && this.#is('name', end);
  }

  #expression(): Expression {
    let value = this.#or();
    while (this.#take('name', 'if') !== undefined) {
      const test = this.#or();
      const otherwise = this.#take('name', 'else') === undefined ? {} : { otherwise: this.#expression() };
      value = { type: 'if', test, value, ...otherwise };
    }
    return value;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#take('name', 'or') !== undefined) left = { type: 'or', left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#take('name', 'and') !== undefined) left = { type: 'and', left, right: this.#not() };
    return left;
  }

  #not(): Expression {
    return this.#take('name', 'not') === undefined ? this.#compare() : { type: 'not', object: this.#not() };
  }

  #compare(): Expression {
    const first = this.#sum();
    const rest: (readonly [string, Expression])[] = [];
    for (;;) {
      const operator = this.#take('operator', ...COMPARISONS) ?? this.#membership();
      if (operator === undefined) return rest.length === 0 ? first : { type: 'compare', first, rest };
      rest.push([operator, this.#sum()]);
    }
  }

  #membership(): string | undefined {
    const next = this.#tokens[this.#at + 1];
    if (this.#is('name', 'not') && next?.type === 'name' && next.text === 'in') {
      this.#at += 2;
      return 'not in';
    }
    return this.#take('name', 'in');
  }

  #binary(operators: readonly string[], operand: () => Expression): Expression {
    let left = operand();
    for (;;) {
      const operator = this.#take('operator', ...operators);
      if (operator === undefined) return left;
      left = { type: 'binary', operator, left, right: operand() };
    }
  }

  #sum = (): Expression => this.#binary(['+', '-'], this.#concat);

  #concat = (): Expression => {
    const first = this.#product();
    const parts = [first];
    while (this.#take('operator', '~') !== undefined) parts.push(this.#product());
    return parts.length === 1 ? first : { type: 'concat', parts };
  };

  #product = (): Expression => this.#binary(['*', '/', '//', '%'], this.#power);
  #power = (): Expression => this.#binary(['**'], () => this.#unary());

  #unary(withFilter = true): Expression {
    const sign = this.#take('operator', '-', '+');
    const object =
      sign === undefined
        ? this.#primary()
        : ({ type: sign === '-' ? 'negative' : 'positive', object: this.#unary(false) } as const);
    const value = this.#postfix(object);
    return withFilter ? this.#filters(value) : value;
  }

  #primary(): Expression {
    const token = this.#token ?? this.#fail('an expression');
    this.#at++;
    switch (token.type) {
      case 'name': {
        const value = CONSTANTS.get(token.text);
        return value === undefined ? { type: 'name', name: token.text } : { type: 'constant', value };
      }
      case 'string': {
        let value = token.text;
        for (let more = this.#take('string'); more !== undefined; more = this.#take('string')) value += more;
        return { type: 'constant', value };
      }
      case 'int':
        return { type: 'constant', value: BigInt(token.text) };
      case 'float':
        return { type: 'constant', value: Number(token.text) };
      default:
    }
    if (token.type === 'operator' && token.text === '(') {
      const value: Expression = this.#is('operator', ')') ? { type: 'tuple', items: [] } : this.#tuple();
      this.#expect('operator', ')');
      return value;
    }
    if (token.type === 'operator' && token.text === '[')
      return { type: 'list', items: this.#items(']', () => this.#expression()) };
    if (token.type === 'operator' && token.text === '{')
      return { type: 'dict', entries: this.#items('}', () => this.#entry()) };
    this.#at--;
    return this.#fail('an expression');
  }

  #items<T>(close: string, item: () => T): T[] {
    const items: T[] = [];
    while (this.#take('operator', close) === undefined) {
      if (items.length > 0) this.#expect('operator', ',');
      if (this.#take('operator', close) !== undefined) return items;
      items.push(item());
    }
    return items;
  }

  #entry(): readonly [Expression, Expression] {
    const key = this.#expression();
    this.#expect('operator', ':');
    return [key, this.#expression()];
  }

  #postfix(first: Expression): Expression {
    let object = first;
    for (;;) {
      if (this.#take('operator', '.') !== undefined) {
        const index = this.#take('int');
        if (index !== undefined) object = { type: 'item', object, key: { type: 'constant', value: BigInt(index) } };
        else object = { type: 'attribute', object, name: this.#expect('name') };
      } else if (this.#take('operator', '[') !== undefined) object = this.#subscript(object);
      else if (this.#is('operator', '(')) object = { type: 'call', callee: object, inputs: this.#inputs() };
      else return object;
    }
  }

  #subscript(object: Expression): Expression {
    const bounds: (Expression | undefined)[] = [];
    let isSlice = false;
    let bound: Expression | undefined;
    while (this.#take('operator', ']') === undefined) {
      if (this.#take('operator', ':') !== undefined) {
        isSlice = true;
        bounds.push(bound);
        bound = undefined;
      } else if (bound === undefined) bound = this.#expression();
      else this.#fail("']'");
    }
    if (isSlice && bounds.length <= 2) return { type: 'slice', object, bounds: [...bounds, bound] };
    return bound === undefined || isSlice ? this.#fail('an index') : { type: 'item', object, key: bound };
  }

  #inputs(): Inputs {
    this.#expect('operator', '(');
    const args: Expression[] = [];
    const named: (readonly [string, Expression])[] = [];
    let spreads: { readonly spread?: Expression; readonly spreadNamed?: Expression } = {};
    let isFirst = true;
    while (this.#take('operator', ')') === undefined) {
      if (!isFirst) this.#expect('operator', ',');
      isFirst = false;
      if (this.#take('operator', ')') !== undefined) break;
      const next = this.#tokens[this.#at + 1];
      if (this.#take('operator', '**') !== undefined) spreads = { ...spreads, spreadNamed: this.#expression() };
      else if (this.#take('operator', '*') !== undefined) spreads = { ...spreads, spread: this.#expression() };
      else if (this.#is('name') && next?.type === 'operator' && next.text === '=') {
        const name = this.#expect('name');
        this.#at++;
        if (named.some(([each]) => each === name)) throw new Error(`two values have the name '${name}'`);
        named.push([name, this.#expression()]);
      } else if (named.length > 0) this.#fail('a named value');
      else args.push(this.#expression());
    }
    return { args, named, ...spreads };
  }

  #filters(first: Expression): Expression {
    let object = first;
    for (;;) {
      if (this.#take('operator', '|') !== undefined) object = this.#filter(object);
      else if (this.#take('name', 'is') !== undefined) object = this.#test(object);
      else if (this.#is('operator', '(')) object = { type: 'call', callee: object, inputs: this.#inputs() };
      else return object;
    }
  }

  #dotted(): string {
    let name = this.#expect('name');
    while (this.#take('operator', '.') !== undefined) name += `.${this.#expect('name')}`;
    return name;
  }

  #filter(object: Expression): Expression {
    const name = this.#dotted();
    const inputs = this.#is('operator', '(') ? this.#inputs() : { args: [], named: [] };
    return { type: 'filter', name, object, inputs };
  }

  #test(object: Expression): Expression {
    const isNegated = this.#take('name', 'not') !== undefined;
    const name = this.#dotted();
    let inputs: Inputs = { args: [], named: [] };
    if (this.#is('operator', '(')) inputs = this.#inputs();
    else if (this.#beginsArgument()) {
      if (this.#is('name', 'is')) this.#fail('an expression');
      inputs = { args: [this.#postfix(this.#primary())], named: [] };
    }
    const test: Expression = { type: 'test', name, object, inputs };
    return isNegated ? { type: 'not', object: test } : test;
  }

  #beginsArgument(): boolean {
    if (this.#is('name', 'else', 'or', 'and')) return false;
    return (
      (['name', 'string', 'int', 'float'] as const).some((type) => this.#is(type)) || this.#is('operator', '[', '{')
    );
  }
}
