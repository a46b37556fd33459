/** Recipes as programs write them, and changes by `--set`. */
import { recipeJson } from '../../../src/method/recipe/recipe.js';
import { tinyRecipe } from '../../support/tiny-run.js';
import type { Target } from '../target.js';

const plain = JSON.parse(JSON.stringify(recipeJson(tinyRecipe())));
const { agents, policies, advantage, loss, training, evaluation, warmStart } = plain;
const sections = { agents, policies, advantage, loss, training, evaluation, warmStart };
const words = [
  ...['drmas', 'gae', 'grpo', 'ema', 'ppo-clip', 'gspo', 'type', 'steps', 'learningRate', 'adamw', 'muon', 'lora'],
  ...['tiny-decoder', 'path', 'critic', 'reference', 'top', 'null', 'separate', 'shared'],
];

const recipe: Target = {
  name: 'recipe',
  seeds: [JSON.stringify(sections), JSON.stringify({ training: { steps: 3 }, seed: 7 }), '{"assign":"shared"}'],
  words,
  inputs: 22_000,
  run(input) {
    let changes: unknown;
    try {
      changes = JSON.parse(input.toString());
    } catch {
      return; // a program's recipe is no text
    }
    if (typeof changes !== 'object' || changes === null || 'team' in changes || 'tasks' in changes) return;
    JSON.stringify(recipeJson(tinyRecipe(changes)));
  },
};

const leaves = (value: unknown, path: string): string[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === '' ? key : `${path}.${key}`))
    : [`${path}=${JSON.stringify(value)}`];

const set: Target = {
  name: 'set',
  seeds: [...leaves(sections, ''), 'assign={"verifier":{"type":"endpoint","url":"http://h/v1","model":"m"}}'],
  words: [...words, '=', '.', '__proto__', 'constructor', 'apiKey', '{"', '"}', '[', ':'],
  inputs: 45_000,
  run: (input) => tinyRecipe({}, [input.toString()]),
};

export const recipes = [recipe, set];
