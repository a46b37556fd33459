/** Wrong answers of sampling engines: each changes the JSON of an honest one, and says how it is refused. */

/** A sampled response in an engine's answer, whose lists a lie changes in place. */
interface Response {
  tokens: unknown[];
  logprobs: unknown[];
}

export interface Lie {
  readonly name: string;
  /** The text of the error, beside server and policy. */
  readonly error: RegExp;
  change(response: Response): void;
}

/** Numbers that JSON.stringify cannot write: `raw('1e999')`. */
const raw = (text: string) => `raw:${text}:raw`;
const id = (name: string, value: unknown, error: RegExp): Lie => ({
  name,
  error,
  change: ({ tokens }) => {
    tokens[0] = value;
  },
});
const logprob = (name: string, value: unknown, error: RegExp): Lie => ({
  name,
  error,
  change: ({ logprobs }) => {
    logprobs[0] = value;
  },
});

const notAnId = (value: string) =>
  new RegExp(`(token_ids|logprobs)\\[0\\]\\S* is ${value}, expected a token id of 0 to`);
const notALogprob = (value: string) => new RegExp(`logprobs\\[0\\]\\S* is ${value}, expected`);

/** @param vocabSize The number of ids of the model */
export const lies = (vocabSize: number): readonly Lie[] => [
  id('an id beyond 32 bits', 2 ** 32 + 5, notAnId('4294967301')),
  id('an id of 2^31', 2 ** 31, notAnId('2147483648')),
  id('an id of 2^53', 2 ** 53, notAnId('9007199254740992')),
  id('the first id that the vocabulary lacks', vocabSize, notAnId(`${vocabSize}`)),
  id('an id far outside', 999_999, notAnId('999999')),
  id('a negative id', -1, notAnId('-1')),
  id('a negative id that wraps to a right one', -(2 ** 32) + 5, notAnId('-4294967291')),
  id('a fraction as id', 1.5, notAnId('1.5')),
  id('a text as id', '3', notAnId('"3"')),
  id('null as id', null, notAnId('null')),
  id('a list as id', [3], notAnId('\\[3\\]')),
  id('an infinite id', raw('1e999'), notAnId('Infinity')),
  logprob('a log-prob of 2', 2, notALogprob('2')),
  logprob('a log-prob of 80', 80, notALogprob('80')),
  logprob('a log-prob just above rounding', 0.02, notALogprob('0\\.02')),
  logprob('a log-prob of -1e308', -1e308, notALogprob('-1e\\+308')),
  logprob('an infinite log-prob', raw('-1e999'), notALogprob('-Infinity')),
  logprob('null as log-prob', null, notALogprob('null')),
  logprob('a text as log-prob', '-1', notALogprob('"-1"')),
  logprob('true as log-prob', true, notALogprob('true')),
  {
    name: 'NaN, which JSON has not',
    error: /answered something else than expected/,
    change: ({ logprobs }) => {
      logprobs[0] = raw('NaN');
    },
  },
  {
    name: 'no tokens',
    error: /the answer has 0 tokens, expected at least 1/,
    change: (response) => {
      response.tokens.length = 0;
      response.logprobs.length = 0;
    },
  },
  {
    name: 'more tokens than were asked for',
    error: /the answer has \d+ tokens, expected at most \d+/,
    change: (response) => {
      response.tokens = new Array(5000).fill(3);
      response.logprobs = new Array(5000).fill(-1);
    },
  },
];

/** Lies that only an engine with two separate lists can tell. */
export const liesOfTwoLists: readonly Lie[] = [
  {
    name: 'a log-prob too few',
    error: /has \d+ log-probs of \d+ tokens?/,
    change: ({ logprobs }) => void logprobs.pop(),
  },
  {
    name: 'a log-prob too many',
    error: /has \d+ log-probs of \d+ tokens?/,
    change: ({ logprobs }) => void logprobs.push(-1),
  },
  { name: 'a token too few', error: /tokens?, expected/, change: ({ tokens }) => void tokens.pop() },
];

/** The JSON text of an engine's honest answer, with a lie in it. */
export function withLie(type: 'vllm' | 'sglang', { change }: Lie, text: string): string {
  const answer = JSON.parse(text);
  if (type === 'vllm') {
    const [choice] = answer.choices;
    const response = { tokens: choice.token_ids, logprobs: choice.logprobs.token_logprobs };
    change(response);
    choice.token_ids = response.tokens;
    choice.logprobs.token_logprobs = response.logprobs;
  } else {
    const pairs: unknown[][] = answer.meta_info.output_token_logprobs;
    const response = { tokens: pairs.map(([, token]) => token), logprobs: pairs.map(([value]) => value) };
    change(response);
    answer.meta_info.output_token_logprobs = response.tokens.map((token, t) => [response.logprobs[t], token, null]);
  }
  return JSON.stringify(answer).replaceAll(/"raw:(.*?):raw"/g, '$1');
}
