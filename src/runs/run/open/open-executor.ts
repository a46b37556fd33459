/** The stage that plays: the speakers of all agents, and the executor of their episodes. */
import type { ModelHandle, TextBackend } from '@drmas/engine/contract';
import { contentHash } from '@drmas/engine/disk';
import type { Host } from '@drmas/engine/host';
import { openEndpoint, openTextModel } from '@drmas/engine/node';
import { queueExecutor } from '../../../cluster/queue.js';
import { type OpenRollouts, openRollouts } from '../../../gateway/rollouts.js';
import type { rolloutSettings } from '../../../method/index.js';
import { type Assignment, type Recipe, recipeJson } from '../../../method/recipe.js';
import { inProcessExecutor, type RolloutContext, type RolloutExecutor } from '../../../teams/rollout.js';
import { watchTeams } from '../../../teams/watchdog.js';
import { isolatedExecutor, THREADS } from '../isolation/isolated-executor.js';

/** Opens what episodes ask: the models, the endpoints, and the gateway for agents in other programs. */
export function openSpeakers(
  { timeoutMs, ...settings }: ReturnType<typeof rolloutSettings>,
  gateway: Recipe['gateway'] | undefined,
  { endpoints, models }: Pick<Assignment, 'endpoints'> & { readonly models: Readonly<Record<string, ModelHandle>> },
  host: Host,
): Promise<OpenRollouts> {
  const others = endpoints.map(({ name, endpoint }) => [name, { endpoint: openText(name, endpoint) }]);
  return openRollouts(
    { ...settings, timeoutMs },
    { ...models, ...Object.fromEntries(others) },
    {
      gateway,
      onIgnored: (message) => host.warn('gateway.ignored', message),
      watch: () => watchTeams(timeoutMs),
      warn: once((message) => host.warn('team.stray', message)),
      listener: host.listener,
    },
  );
}

/** The executor of the recipe's episodes. @throws RecipeError when Redis does not answer at the recipe's address */
export async function openExecutor(recipe: Recipe, host: Host, context: RolloutContext): Promise<RolloutExecutor> {
  const { rollout, code, gateway } = recipe;
  if (rollout === undefined || code === undefined) return inProcessExecutor(context);
  const { type, isolate } = rollout;
  const digest = contentHash(recipeJson(recipe));
  if (type === 'queue') return queueExecutor(context, { code, rollout, recipe: digest, gateway, host });
  if (isolate === false) return inProcessExecutor(context);
  return isolatedExecutor(context, code, isolate === true ? THREADS : isolate);
}

const openText = (name: string, model: Assignment['endpoints'][number]['endpoint']): TextBackend =>
  model.type === 'endpoint' ? openEndpoint(model) : openTextModel(name, model, model.complete);

function once(act: (message: string) => void): (message: string) => void {
  let done = false;
  return (message) => {
    if (done) return;
    done = true;
    act(message);
  };
}
