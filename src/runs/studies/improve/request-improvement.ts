/** Resolves the request for an improvement: of a recipe, of a run, or of an improvement to resume. */
import { join, resolve } from 'node:path';
import { type EndpointSpec, endpointSchema } from '@drmas/engine/endpoints';
import { parseAt, RecipeError, suggestion } from '@drmas/engine/errors';
import { nodeFiles } from '@drmas/engine/platform';
import { evaluationTasks } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { defaultRunPath, type ImprovementRecord, RECIPE, readImprovement } from '../../../method/store.js';
import { prepareTasks } from '../../run/open-run.js';
import { requestEvaluation, requestRecipe } from '../../run/request.js';
import { rememberTyped, requireOwnAddress, requireOwnRecipe, requireOwnSettings } from '../../run/stored-data.js';
import type { Improvement } from './improve-prompts.js';

const PROPOSALS = 8;
const TASKS = 64;
const SAMPLES = 4;

export interface ImprovementOptions {
  /** The OpenAI-compatible endpoint of the language model that proposes, and its name on the server. */
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
  /** The agents whose prompts are improved in turn. Default: all. */
  readonly agents?: readonly string[] | undefined;
  /** The most proposals. */
  readonly proposals?: number | undefined;
  /** Tasks of a round, and episodes of each. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  /** Tasks on which a pool of prompts is compared. Default: no pool. */
  readonly pool?: number | undefined;
  readonly set?: readonly string[] | undefined;
  readonly seed?: number | undefined;
  /** The improvement's directory. Default: a new directory under `runs/`. */
  readonly run?: string | undefined;
  readonly acceptChanges?: boolean | undefined;
}

export interface ImprovementRequest extends Omit<Improvement, 'onRound'> {
  /** The number of tasks on which the first and the last prompts are compared. */
  readonly heldOutTasks: number;
}

/**
 * Resolves the request, reads the tasks, and creates no file.
 * @param source A recipe, a run's directory, or the directory of an improvement to resume
 * @throws RecipeError, TaskError, RunError with the wrong value
 */
export async function requestImprovement(source: string, options: ImprovementOptions): Promise<ImprovementRequest> {
  const begun = await readImprovement(nodeFiles, source);
  if (begun !== undefined) return continuation(source, begun, options);
  const { set = [], seed, pool, proposals = PROPOSALS, tasks = TASKS, samples = SAMPLES } = options;
  const overrides = [...set, ...(seed === undefined ? [] : [`seed=${seed}`])];
  const played = await playedOf(source, overrides, undefined, options.acceptChanges);
  const { recipe, ...place } = played;
  const names = Object.keys(recipe.team.agents);
  const { agents = names } = options;
  const unknown = agents.find((agent) => !names.includes(agent));
  if (unknown !== undefined)
    throw new RecipeError(`the team has no agent '${unknown}'${suggestion(unknown, names)}`, 'agents');
  const endpoint = endpointOf(options.endpoint, options.model);
  const { url, model } = endpoint;
  await rememberTyped(overrides, [url]);
  return {
    recipe,
    heldOutTasks: await heldOutOf(recipe),
    checkpoint: place.checkpoint,
    endpoint,
    directory: options.run ?? (await defaultRunPath(`${recipe.name}-prompts`)),
    record: {
      version: 1,
      source: place.source,
      codeHash: place.codeHash,
      overrides,
      ...(place.checkpoint === undefined ? {} : { checkpoint: place.checkpoint.step }),
      endpoint: { url, model },
      agents,
      proposals,
      tasks,
      samples,
      ...(pool === undefined ? {} : { pool }),
    },
  };
}

/** The request to resume an improvement. Only its number of proposals and its endpoint may change. */
async function continuation(
  directory: string,
  before: ImprovementRecord,
  { endpoint, model, proposals, acceptChanges, ...others }: ImprovementOptions,
): Promise<ImprovementRequest> {
  const given = Object.entries(others).find(([, value]) => (Array.isArray(value) ? value.length > 0 : value));
  if (given !== undefined)
    throw new RecipeError(
      `${directory} is an improvement: it resumes with its own settings; --${given[0]} does not apply`,
    );
  const { source, overrides } = before;
  if (!(await nodeFiles.exists(join(source, RECIPE)))) await requireOwnRecipe(directory, source);
  await requireOwnSettings(directory, overrides);
  if (endpoint === undefined) await requireOwnAddress(directory, 'improvement.json: endpoint.url', before.endpoint.url);
  const { recipe, checkpoint, codeHash } = await playedOf(source, overrides, before.checkpoint, acceptChanges);
  const spec = endpointOf(endpoint ?? before.endpoint.url, model ?? before.endpoint.model);
  const { result: _, ...record } = before;
  return {
    recipe,
    heldOutTasks: await heldOutOf(recipe),
    checkpoint,
    directory,
    endpoint: spec,
    record: {
      ...record,
      codeHash,
      endpoint: { url: spec.url, model: spec.model },
      proposals: proposals ?? before.proposals,
    },
  };
}

/** The number of tasks of the recipe's evaluation. @throws TaskError, RecipeError */
async function heldOutOf(recipe: Recipe): Promise<number> {
  const { test } = await prepareTasks(recipe, 'evaluation');
  return evaluationTasks(test, recipe.evaluation.tasks).length;
}

type PlayedSource = Pick<Improvement, 'recipe' | 'checkpoint'> & Pick<ImprovementRecord, 'source' | 'codeHash'>;

/** The policies that play: a run's last checkpoint, or a recipe. A recipe may have only frozen agents. */
async function playedOf(
  source: string,
  set: readonly string[],
  step: number | undefined,
  acceptChanges: boolean | undefined,
): Promise<PlayedSource> {
  if (await nodeFiles.exists(join(source, RECIPE))) {
    const from = step === undefined ? undefined : String(step);
    const { run, recipe, checkpoint } = await requestEvaluation(source, { set, from, acceptChanges });
    return { recipe, checkpoint, source: resolve(source), codeHash: run.record.recipe.codeHash };
  }
  const { recipe, loaded } = await requestRecipe(source, { set, allFrozen: true });
  return { recipe, source: loaded.source, codeHash: loaded.codeHash };
}

function endpointOf(url: string | undefined, model: string | undefined): EndpointSpec {
  if (url === undefined || model === undefined)
    throw new RecipeError(
      'who proposes? --endpoint names an OpenAI-compatible server, such as http://127.0.0.1:8000/v1, --model its model',
    );
  return parseAt(endpointSchema, { type: 'endpoint', url, model }, ['endpoint']);
}

/** The most episodes that an improvement plays: in rounds, on the tasks of a pool, and on held-out tasks. */
export function episodesOf({
  recipe,
  record,
  heldOutTasks,
}: Pick<ImprovementRequest, 'recipe' | 'record' | 'heldOutTasks'>) {
  const { tasks, samples, proposals, pool } = record;
  const { evaluation } = recipe;
  return {
    rounds: tasks * samples * (2 * proposals + (pool === undefined ? 1 : 0)),
    pool: (pool ?? 0) * samples * (1 + proposals),
    heldOut: 2 * heldOutTasks * evaluation.samples,
  };
}
