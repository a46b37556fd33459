/** What the schema alone cannot see of a recipe's models, their warm start and their references. */
import { RecipeError } from '../core/errors.js';
import { RandomStream } from '../core/random.js';
import { wholeModel } from '../model/model-spec.js';
import type { Assignment } from '../recipe/assignment.js';
import { suggestion } from '../recipe/explain.js';
import type { Recipe } from '../recipe/recipe.js';

/** @throws RecipeError when a response could fill a model's context */
export function checkModels(recipe: Recipe, assignment: Assignment): void {
  for (const speaker of assignment.models) {
    const { agents } = speaker;
    const model = wholeModel(speaker.model);
    for (const agent of agents) {
      const { maxTokens } = (recipe.agents[agent] as Recipe['agents'][string]).sampling;
      if (model.type !== 'tiny-decoder' || maxTokens < model.context) continue;
      const message = `${maxTokens} leave no room for a prompt in the model's context of ${model.context}`;
      throw new RecipeError(message, `agents.${agent}.sampling.maxTokens`);
    }
  }
}

/** @throws RecipeError when there is nothing that a policy could learn from */
export function checkWarmStart(recipe: Recipe, assignment: Assignment): void {
  const { warmStart, tasks } = recipe;
  if (warmStart === undefined) return;
  if (tasks.train.trace === undefined)
    throw new RecipeError(`the tasks '${tasks.train.name}' generate no traces to learn from`, 'warmStart');
  const learners = assignment.warmStarted;
  if (warmStart.share === 'base') {
    if (new Set(learners.map(({ model }) => JSON.stringify(model))).size > 1)
      throw new RecipeError("policies with different models cannot share a base; expected 'policy'", 'warmStart.share');
    return;
  }
  const shown = tracedAgents(recipe);
  for (const { name, agents } of learners)
    if (!agents.some((agent) => shown.has(agent)))
      throw new RecipeError(
        `the tasks '${tasks.train.name}' generate no traces for ${agents.join(', ')}, so '${name}' cannot learn from its own; expected 'base'`,
        'warmStart.share',
      );
}

/** Demonstrations that are drawn to see whom they are for. */
const LOOKED_AT = 2000;

/** The agents that the tasks generate demonstrations for. */
function tracedAgents({ tasks, warmStart }: Recipe): ReadonlySet<string> {
  const draw = (i: number) => tasks.train.trace?.(new RandomStream('traced agents', warmStart?.seed ?? 0, i), 'train');
  return new Set(Array.from({ length: LOOKED_AT }, (_, i) => draw(i)?.agent).filter((agent) => agent !== undefined));
}

/** @throws RecipeError when a policy is to be held near a policy that is not there, or near itself */
export function checkReferences({ policies }: Recipe): void {
  for (const [policy, { kl }] of Object.entries(policies)) {
    if (kl?.reference.type !== 'policy') continue;
    const path = `policies.${policy}.kl.reference.policy`;
    const other = kl.reference.policy;
    if (other === policy) throw new RecipeError('a policy is never away from itself: expected another one', path);
    if (policies[other] === undefined)
      throw new RecipeError(`there is no policy '${other}'${suggestion(other, Object.keys(policies))}`, path);
  }
}
