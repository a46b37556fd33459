/** Checks of models and frozen agents that the schema of the settings cannot make. */
import { isObject, RecipeError } from '@drmas/engine/errors';
import { policiesOf } from './inherited.js';
import type { Plain } from './overrides.js';

/** @throws RecipeError if the model of the recipe is one that is never trained */
export function checkTrainable(model: unknown): void {
  if (isObject(model) && ['frozen', 'endpoint', 'text', 'constant'].includes(String(model.type)))
    throw new RecipeError(
      'it is the model to train, and a frozen model is never trained; freeze single agents with ' +
        "assign: { judge: frozen(...), solver: 'solver' }",
      'model',
    );
}

/**
 * Checks the names of policies, and that no setting requires a frozen agent to train.
 * @throws RecipeError with the setting
 */
export function checkFrozen(
  { assign, policies, agents, evaluation }: Plain,
  { allFrozen = false }: { readonly allFrozen?: boolean | undefined },
): void {
  if (!isObject(assign)) return;
  const trained = policiesOf(assign);
  if (trained.length === 0 && !allFrozen)
    throw new RecipeError('every agent is frozen: there is nothing to train', 'assign');
  const names = new Map<string, string>();
  for (const policy of trained) {
    const other = names.get(policy.toLowerCase());
    if (other !== undefined && other !== policy)
      throw new RecipeError(
        `the policies '${other}' and '${policy}' differ only by case, and so would their folders, which are one ` +
          'folder on many disks; expected another name',
        'assign',
      );
    names.set(policy.toLowerCase(), policy);
  }
  for (const [agent, entry] of Object.entries(assign)) {
    if (typeof entry === 'string') continue;
    if (trained.includes(agent)) {
      const others = Object.keys(assign).filter((other) => assign[other] === agent);
      const message = `'${agent}' is the name of a frozen agent; expected another name for the policy`;
      throw new RecipeError(message, `assign.${others[0]}`);
    }
    const frozen = `agent '${agent}' is frozen`;
    if (isObject(policies) && policies[agent] !== undefined)
      throw new RecipeError(`${frozen}: no policy of its trains`, `policies.${agent}`);
    const settings = isObject(agents) && isObject(agents[agent]) ? agents[agent] : {};
    if (settings.rewardWeight !== undefined)
      throw new RecipeError(`${frozen}: its turns teach nothing`, `agents.${agent}.rewardWeight`);
    if (!isObject(entry) || entry.type !== 'endpoint') continue;
    const { sampling, evaluationSampling } = settings;
    const shared = isObject(evaluation) ? evaluation.sampling : undefined;
    const apart = isObject(evaluationSampling) && evaluationSampling.topK !== undefined;
    for (const [section, sampled] of [
      [`agents.${agent}.sampling`, sampling],
      apart ? [`agents.${agent}.evaluationSampling`, evaluationSampling] : ['evaluation.sampling', shared],
    ] as const)
      if (isObject(sampled) && (sampled.topK ?? 0) !== 0)
        throw new RecipeError(
          "the protocol of endpoints has no top-k; expected 0, and the server's own field in the endpoint's body",
          `${section}.topK`,
        );
  }
}

/** @throws RecipeError if neither the recipe nor a policy names a model */
export function requireModels(tree: Plain, model: unknown): void {
  const { policies } = tree;
  if (!isObject(policies) || model !== undefined) return;
  for (const policy of policiesOf(tree.assign)) {
    const entry = policies[policy];
    if (isObject(entry) && entry.model === undefined) {
      throw new RecipeError(
        'is required: tinyDecoder({ ... }), checkpoint(path) or lora(base, { rank }), here or for every policy',
        'model',
      );
    }
  }
}
