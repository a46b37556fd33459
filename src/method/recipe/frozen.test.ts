import { describe, expect, it } from 'vitest';
import { tinyDefinition, tinyModel } from '../../../test/support/tiny-run.js';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import type { RecipeInput } from './define.js';
import { frozen } from './frozen.js';
import { recipeJson } from './recipe.js';

const model = tinyModel;
const url = 'http://127.0.0.1:8000/v1';
const judge = frozen({ url, model: 'judge' });
const resolve = (changes: Partial<RecipeInput>, ...overrides: string[]) =>
  resolveRecipe(tinyDefinition(changes), { overrides });
const half = (verifier: unknown) => ({ assign: { solver: 'big', verifier } }) as Partial<RecipeInput>;

describe('a frozen agent', () => {
  it('on an endpoint has all defaults, and each leaf can be overridden', () => {
    expect(resolve(half(judge)).assign).toEqual({
      solver: 'big',
      verifier: { type: 'endpoint', url, model: 'judge', timeoutMs: 60_000, retries: 3, concurrency: 8, body: {} },
    });
    const changed = resolve(half(judge), 'assign.verifier.retries=0', 'assign.verifier.body.top_k=20');
    expect(changed.assign.verifier).toMatchObject({ retries: 0, body: { top_k: 20 } });
    expect(Object.keys(changed.policies)).toEqual(['big']);
    expect(resolve(half(judge), 'assign.verifier=small').assign).toEqual({ solver: 'big', verifier: 'small' });
  });

  it('on a model has the same description as a policy with that model', () => {
    const { assign, policies } = resolve(half(frozen(model)));
    expect(JSON.stringify(assign.verifier)).toBe(JSON.stringify({ type: 'frozen', model: policies.big?.model }));
  });

  it('does not write its key into the recorded recipe', () => {
    const recipe = resolve(half(frozen({ url, model: 'judge', apiKey: 'sk-secret' })));
    expect(recipe.assign.verifier).toMatchObject({ apiKey: 'sk-secret' });
    expect(recipeJson(recipe).assign).toEqual(recipeJson(resolve(half(judge))).assign);
  });
});

it.each([{ baseURL: url, model: 'judge' }, 'openai/gpt-5-mini', 'judge', undefined, () => model])(
  'frozen(%j) is refused where it is written',
  (given) => {
    expect(() => frozen(given as never)).toThrow(
      'frozen(...): expected checkpoint(...) or another model, or an object',
    );
  },
);

describe('wrong settings of a frozen agent are refused with path and reason', () => {
  it.each([
    [{ assign: { solver: judge, verifier: frozen(model) } }, [], /^assign: every agent is frozen/],
    [
      { assign: { solver: 'verifier', verifier: judge } },
      [],
      /^assign\.solver: 'verifier' is the name of a frozen agent/,
    ],
    [
      { ...half(judge), policies: { verifier: { clipNorm: 1 } } },
      [],
      /^policies\.verifier: agent 'verifier' is frozen/,
    ],
    [half(judge), ['policies.verifier.optimizer.learningRate=1'], /^policies\.verifier: agent 'verifier' is frozen/],
    [half(judge), ['agents.verifier.rewardWeight=2'], /^agents\.verifier\.rewardWeight: agent 'verifier' is frozen/],
    [half(judge), ['agents.verifier.sampling.topK=5'], /^agents\.verifier\.sampling\.topK: .*no top-k/],
    [half(judge), ['evaluation.sampling.topK=5'], /^evaluation\.sampling\.topK: .*no top-k/],
    [
      half(judge),
      ['agents.verifier.evaluationSampling.topK=5'],
      /^agents\.verifier\.evaluationSampling\.topK: .*no top-k/,
    ],
    [half(judge), ['assign.verifier.apiKey=sk-1'], /^assign\.verifier\.apiKey: .*recipe\.json/],
    [half('big'), ['assign.verifier={"type":"endpoint","apiKey":"x"}'], /^assign\.verifier: .*recipe\.json/],
    [half('big'), ['assign={"verifier":{"type":"endpoint","apiKey":"sk-1"}}'], /^assign: .*recipe\.json/],
    [half('big'), ['assign={"verifier":{"type":"endpoint","apiKey":"sk-1"},}'], /^assign: .*recipe\.json/],
    [half('big'), ['assign={"verifier":[[{"a":{"apiKey":null}}]]}'], /^assign: .*recipe\.json/],
    [half('big'), ['assign.verifier.apiKey.x=sk-1'], /^assign\.verifier\.apiKey\.x: .*recipe\.json/],
    [half('big'), ['backend.apiKey=x'], /^backend\.apiKey: .*recipe\.json; set TINKER_API_KEY/],
    [
      half(frozen({ url: 'judge:8000', model: 'judge' })),
      [],
      /^assign\.verifier\.url: expected the URL of an endpoint/,
    ],
    [half(frozen({ url, model: 'judge', body: { stream: true } })), [], /^assign\.verifier\.body: cannot set model,/],
    [
      half(frozen({ url, model: 'judge', concurrency: 0 })),
      [],
      /^assign\.verifier\.concurrency: expected .* >= 1, got 0/,
    ],
    [half({ ...judge, urll: 1 }), [], /^assign\.verifier\.urll: unknown key 'urll'; did you mean 'url'/],
    [half({ type: 'thawed' }), [], /^assign\.verifier\.type: expected one of frozen, endpoint/],
    [half(frozen({ ...model, layers: 0 })), [], /^assign\.verifier\.model\.layers: expected/],
    [{ model: frozen(model) }, [], /^model: .*never trained; freeze single agents with assign: /],
    [{ model: frozen({ url, model: 'judge' }) }, [], /^model: .*never trained/],
    [half('big'), ['agents.solver.rewardWeight=-1'], /^agents\.solver\.rewardWeight: expected a number >= 0, got -1/],
  ])('%#', (changes, overrides, message) => {
    expect(() => resolve(changes as Partial<RecipeInput>, ...overrides)).toThrow(message);
  });
});

describe('an address of a server is refused', () => {
  it.each(['http://me:pw@host/v1', 'http://me@host/v1', ' http://me:pw@host/v1'])('with a password: %s', (address) => {
    const recipe = half(frozen({ url: address, model: 'judge' }));
    expect(() => resolve(recipe)).toThrow(/^assign\.verifier\.url: has a password in it/);
  });

  it.each(['?api-version=1', '?key=sk-1', '#v1'])('with a part behind the path: %s', (end) => {
    const recipe = { ...half(judge), sampler: { type: 'vllm', url } } as Partial<RecipeInput>;
    for (const setting of ['assign.verifier.url', 'sampler.url', 'rollout.publicUrl', 'gateway.publicUrl'])
      expect(() => resolve(recipe, `${setting}=http://host${end}`)).toThrow(
        `${setting}: expected a URL without ? and #`,
      );
  });

  it('with the path of a request', () => {
    const recipe = half(frozen({ url: 'https://host/v1/chat/completions', model: 'judge' }));
    expect(() => resolve(recipe)).toThrow(/url: expected the URL up to the version, without \/chat\/completions/);
  });
});
