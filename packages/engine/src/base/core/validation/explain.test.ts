import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { RecipeError } from '../errors.js';
import { faultsText, issuesText, parseAt, shown, suggestion } from './explain.js';

const schema = z.strictObject({
  steps: z.int().min(0).default(5),
  rate: z.number().gt(0).lt(1).optional(),
  name: z.string().min(1).optional(),
  kind: z.enum(['fast', 'slow']).optional(),
  file: z
    .string()
    .regex(/^[a-z]+$/)
    .optional(),
  list: z.array(z.number()).min(2).optional(),
  loss: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('clip'), clip: z.number().min(0).default(0.2) }),
      z.strictObject({ type: z.literal('mean'), weight: z.number() }),
    ])
    .optional(),
  agents: z
    .strictObject({ solver: z.strictObject({}), verifier: z.strictObject({}) })
    .partial()
    .optional(),
  assign: z.strictObject({ solver: z.string(), verifier: z.string() }).optional(),
  policies: z
    .strictObject({ solver: z.strictObject({}) })
    .partial()
    .optional(),
});

function errorOf(value: unknown, at?: readonly PropertyKey[]): RecipeError {
  try {
    parseAt(schema, value, at);
  } catch (error) {
    if (error instanceof RecipeError) return error;
    throw error;
  }
  throw new Error('expected a RecipeError');
}

describe('parseAt', () => {
  it('fills in defaults', () => {
    expect(parseAt(schema, { loss: { type: 'clip' } })).toEqual({ steps: 5, loss: { type: 'clip', clip: 0.2 } });
  });

  it.each<[unknown, string]>([
    [{ steps: 1.5 }, 'steps: expected an integer, got 1.5'],
    [{ steps: 'ten' }, 'steps: expected a number, got "ten"'],
    [{ steps: -1 }, 'steps: expected a number >= 0, got -1'],
    [{ rate: 0 }, 'rate: expected a number > 0, got 0'],
    [{ rate: 1 }, 'rate: expected a number < 1, got 1'],
    [{ name: '' }, 'name: expected a text that is not empty, got ""'],
    [{ kind: 'fats' }, 'kind: expected one of fast, slow, got "fats"; did you mean \'fast\'?'],
    [{ kind: 1 }, 'kind: expected one of fast, slow, got 1'],
    [{ file: 'A b' }, 'file: expected a name of letters, digits, - and _, got "A b"'],
    [{ list: [1] }, 'list: expected a list of length >= 2, got [1]'],
    [{ list: [1, 'x'] }, 'list.1: expected a number, got "x"'],
    [{ loss: {} }, 'loss.type: is required: one of clip, mean'],
    [
      { loss: { type: 'clipp' } },
      'loss.type: expected one of clip, mean, got "clipp"; did you mean \'clip\'? A type of',
    ],
    [{ loss: { type: 'mean' } }, 'loss.weight: is required: a number'],
    [{ loss: { type: 'clip', clipp: 1 } }, "loss.clipp: unknown key 'clipp'; did you mean 'clip'? (known: type, clip)"],
    [{ stepz: 1 }, "stepz: unknown key 'stepz'; did you mean 'steps'? (known: "],
    [{ agents: { sovler: {} } }, "agents.sovler: the team has no agent 'sovler'; did you mean 'solver'?"],
    [{ policies: { critic: {} } }, "policies.critic: no agent is assigned to a policy 'critic'"],
    ['text', 'expected an object, got "text"'],
    [{ loss: 'clip' }, `loss: expected { type: 'clip' }, got "clip"`],
    [{ loss: 'clop' }, 'loss: expected an object, got "clop"'],
    [{ assign: { solver: 'a' } }, 'assign.verifier: is required: the name of a policy, or frozen(...)'],
  ])('%j: %s', (value, message) => {
    expect(errorOf(value).message.slice(0, message.length)).toBe(message);
  });

  it('names the dotted path from the root, also where the value is a part', () => {
    const error = errorOf({ loss: { type: 'mean', weight: 'x' } }, ['policies', 'solver']);
    expect(error.path).toBe('policies.solver.loss.weight');
    expect(error.message).toMatch(/^policies\.solver\.loss\.weight: expected a number/);
  });

  it('says everything that is wrong, a line each', () => {
    expect(errorOf({ steps: -1, rate: 2 }).message).toBe(
      'steps: expected a number >= 0, got -1\n  rate: expected a number < 1, got 2',
    );
  });
});

it.each<readonly [string, z.ZodType, unknown]>([
  ['expected a text of length <= 2, got "xxx"', z.string().max(2), 'xxx'],
  ['expected a text of length 2, got "x"', z.string().length(2), 'x'],
  ['expected a list of length 2, got ["x"]', z.array(z.string()).length(2), ['x']],
  ['expected a set of size >= 2, got {}', z.set(z.string()).min(2), new Set()],
  ['expected three letters, got "x"', z.string().min(3, 'expected three letters'), 'x'],
  ['expected the letter x, got "y"', z.literal('x', 'expected the letter x'), 'y'],
  ['expected a path, got 1', z.string('expected a path'), 1],
  ['expected an object, got nothing', z.object({}), undefined],
  [
    'headers: expected a record, got "[secret]"',
    z.object({ headers: z.record(z.string(), z.string()) }),
    { headers: 'k' },
  ],
  [
    'env.K: expected a string, got "[secret]"',
    z.object({ env: z.record(z.string(), z.string()) }),
    { env: { K: ['k'] } },
  ],
  ['a: expected a string, got {"env":"[secret]"}', z.object({ a: z.string() }), { a: { env: { K: 'k' } } }],
])('the fault of options: %s', (message, schema, value) => {
  expect(faultsText(schema, value)).toBe(message);
});

describe('suggestion', () => {
  it('names the nearest name where it is near, and all names where they are few', () => {
    expect(suggestion('stpes', ['steps', 'seed'])).toBe("; did you mean 'steps'? (known: steps, seed)");
    expect(suggestion('zzzzzz', ['steps', 'seed'])).toBe(' (known: steps, seed)');
    const many = Array.from({ length: 17 }, (_, i) => `name${i}`);
    expect(suggestion('name3', many)).toBe("; did you mean 'name3'?");
    expect(suggestion('name', [])).toBe('');
  });
});

describe('shown', () => {
  it('is short and always a text', () => {
    expect([undefined, () => 1, null, { a: 1 }].map(shown)).toEqual(['nothing', 'a function', 'null', '{"a":1}']);
    const circle: unknown[] = [];
    circle.push(circle);
    const throws = {
      get name() {
        throw new Error('no');
      },
    };
    expect([2n, Number.NaN, -Infinity, Symbol('a'), { a: [1n, Number.NaN] }, circle, throws].map(shown)).toEqual([
      ...['2n', 'NaN', '-Infinity', 'Symbol(a)', '{"a":["1n","NaN"]}'],
      ...['an object that cannot be written', 'an object that cannot be written'],
    ]);
    const long = shown('x'.repeat(100));
    expect(long).toHaveLength(60);
    expect(long.endsWith('...')).toBe(true);
  });
});

describe('a list of many wrong values', () => {
  const many = Array.from({ length: 20_000 }, () => 'x');
  const numbers = z.strictObject({ list: z.array(z.number()) });

  it('is told by its first faults and their number', () => {
    const { message } = errorOf({ list: many });
    expect(message.split('\n')).toHaveLength(51);
    expect(message).toMatch(/^list\.0: expected a number, got "x"\n {2}list\.1: .*\n {2}and 19950 more$/s);
    expect(faultsText(numbers, { list: many })).toMatch(/; list\.49: [^;]*; and 19950 more$/);
    expect(faultsText(numbers, { list: many }, 1)).toBe('list.0: expected a number, got "x"; and 19999 more');
    expect(issuesText(many.map((message, i) => ({ path: [i], message })))).toMatch(/; 49: x; and 19950 more$/);
  });
});
