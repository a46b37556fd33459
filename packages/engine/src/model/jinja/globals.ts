/** The functions that each chat template can call, as transformers gives them. */
import { Arguments } from './arguments.js';
import type { Budget } from './budget.js';
import { strftime } from './strftime.js';
import { Callable, dictOf, isMap, iterate, Sequence, Tuple, textOf, truthy, typeName, type Value } from './values.js';

/** The most numbers of a range. */
const RANGE = 10_000;

export function globals(budget: Budget, now: () => Date): Readonly<Record<string, Value>> {
  const define = (name: string, parameters: readonly string[], run: (args: Arguments) => Value) =>
    new Callable(name, (args, named) => run(new Arguments(name, parameters, args, named)));
  return {
    range: define('range', ['start', 'stop', 'step'], (args) => {
      const [first, second, step] = [args.integer('start'), args.integer('stop', Number.NaN), args.integer('step', 1)];
      const [from, to] = Number.isNaN(second) ? [0, first] : [first, second];
      const length = Math.max(0, Math.ceil((to - from) / step));
      if (!(length <= RANGE)) throw new Error(`range(...): expected at most ${RANGE} numbers`);
      budget.entries(length);
      return new Sequence(
        'range',
        Array.from({ length }, (_, i) => BigInt(from + i * step)),
      );
    }),
    dict: new Callable('dict', (args, named) => dictOf([...entriesOf(args[0], budget), ...named])),
    namespace: new Callable(
      'namespace',
      (args, named) => {
        const values = dictOf([...entriesOf(args[0], budget), ...named]);
        for (const name of values.keys()) requirePlain(name);
        return {
          attribute: (name) => values.get(name),
          assign: (name, value) => void values.set(requirePlain(name), value),
        };
      },
      {},
      true,
    ),
    raise_exception: define('raise_exception', ['message'], (args) => {
      throw new Error(textOf(args.get('message'), budget));
    }),
    strftime_now: define('strftime_now', ['format'], (args) => budget.text(strftime(args.text('format'), now()))),
    cycler: new Callable('cycler', (items) => {
      if (items.length === 0) throw new Error('at least one item has to be provided');
      let place = 0;
      const attributes: Readonly<Record<string, () => Value>> = {
        items: () => new Tuple(items),
        pos: () => BigInt(place),
        current: () => items[place],
        next: () =>
          new Callable('next', () => {
            const item = items[place];
            place = (place + 1) % items.length;
            return item;
          }),
        reset: () =>
          new Callable('reset', () => {
            place = 0;
            return null;
          }),
      };
      return { attribute: (name) => (Object.hasOwn(attributes, name) ? attributes[name]?.() : undefined) };
    }),
    lipsum: define('lipsum', ['n', 'html', 'min', 'max'], () => {
      throw new Error('drmas does not play lipsum, which writes random words');
    }),
    joiner: define('joiner', ['sep'], (args) => {
      let isUsed = false;
      const call = new Callable('joiner', () => {
        const text = isUsed ? args.text('sep', ', ') : '';
        isUsed = true;
        return text;
      });
      const attributes: Readonly<Record<string, () => Value>> = {
        sep: () => args.text('sep', ', '),
        used: () => isUsed,
      };
      return { attribute: (name) => (Object.hasOwn(attributes, name) ? attributes[name]?.() : undefined), call };
    }),
  };
}

function requirePlain(name: Value): Value {
  if (typeof name === 'string' && name.startsWith('_'))
    throw new Error(`a namespace takes no attribute that begins with an underscore, got '${name}'`);
  return name;
}

function entriesOf(value: Value, budget: Budget): (readonly [Value, Value])[] {
  if (!truthy(value)) return [];
  if (isMap(value)) return [...value];
  return iterate(value, budget).map((pair) => {
    const [key, item, ...more] = pair instanceof Tuple ? pair.items : iterate(pair, budget);
    if (item === undefined || more.length > 0) throw new Error(`dict: expected pairs, got ${typeName(pair)}`);
    return [key, item];
  });
}
