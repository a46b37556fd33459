/** The parts of a parsed template. */

export type Expression =
  | { readonly type: 'constant'; readonly value: null | boolean | bigint | number | string }
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'list' | 'tuple'; readonly items: readonly Expression[] }
  | { readonly type: 'dict'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly type: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly type: 'item'; readonly object: Expression; readonly key: Expression }
  | { readonly type: 'slice'; readonly object: Expression; readonly bounds: readonly (Expression | undefined)[] }
  | { readonly type: 'call'; readonly callee: Expression; readonly inputs: Inputs }
  | { readonly type: 'filter' | 'test'; readonly name: string; readonly object: Expression; readonly inputs: Inputs }
  | { readonly type: 'not' | 'negative' | 'positive'; readonly object: Expression }
  | { readonly type: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | { readonly type: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly type: 'concat'; readonly parts: readonly Expression[] }
  | { readonly type: 'compare'; readonly first: Expression; readonly rest: readonly (readonly [string, Expression])[] }
  | { readonly type: 'if'; readonly test: Expression; readonly value: Expression; readonly otherwise?: Expression }
  /** The arguments that a block passes to its filter. */
  | { readonly type: 'body'; readonly body: readonly Statement[] };

/** The arguments of a function: values by place, by name, and after `*` and `**`. */
export interface Inputs {
  readonly args: readonly Expression[];
  readonly named: readonly (readonly [string, Expression])[];
  readonly spread?: Expression;
  readonly spreadNamed?: Expression;
}

export type Target =
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'member'; readonly object: string; readonly name: string }
  | { readonly type: 'targets'; readonly targets: readonly Target[] };

export interface MacroNode {
  /** None for the body of a call block. */
  readonly name: string | null;
  readonly parameters: readonly { readonly name: string; readonly value?: Expression }[];
  readonly body: readonly Statement[];
}

export type Statement =
  | { readonly type: 'data'; readonly text: string }
  | { readonly type: 'print'; readonly value: Expression }
  | { readonly type: 'set'; readonly target: Target; readonly value: Expression }
  /** A block that is not scoped sees the template's variables. Variables of a loop or macro around it stay hidden. */
  | { readonly type: 'block'; readonly body: readonly Statement[]; readonly scoped: boolean }
  | {
      readonly type: 'with';
      readonly values: readonly (readonly [Target, Expression])[];
      readonly body: readonly Statement[];
    }
  | {
      readonly type: 'choice';
      readonly test: Expression;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly type: 'for';
      readonly target: Target;
      readonly items: Expression;
      readonly test?: Expression;
      readonly recursive: boolean;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | { readonly type: 'macro'; readonly name: string; readonly macro: MacroNode }
  | { readonly type: 'callBlock'; readonly call: Expression & { readonly type: 'call' }; readonly caller: MacroNode }
  | { readonly type: 'break' | 'continue' };
