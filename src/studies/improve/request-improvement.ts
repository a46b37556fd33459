/** What an improvement of prompts is asked for: of a recipe, of a run, or of an improvement that goes on. */
import { join, resolve } from 'node:path';
import { type EndpointSpec, endpointSchema } from '../../backends/endpoint/endpoint-spec.js';
import { RecipeError } from '../../core/errors.js';
import { nodeFiles } from '../../platform/node-files.js';
import { parseAt, suggestion } from '../../recipe/explain.js';
import { requestEvaluation, requestRecipe } from '../../run/request.js';
import { type ImprovementRecord, readImprovement } from '../../store/improvement-record.js';
import { RECIPE } from '../../store/run-files.js';
import { defaultRunPath } from '../../store/run-path.js';
import type { Improvement } from './improve-prompts.js';

const PROPOSALS = 8;
const TASKS = 64;
const SAMPLES = 4;

export interface ImprovementOptions {
  /** The OpenAI-compatible endpoint of the language model that proposes, and the server's name of it. */
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
  /** The agents that get new prompts, in turns; by default all. */
  readonly agents?: readonly string[] | undefined;
  /** The most proposals. */
  readonly proposals?: number | undefined;
  /** Tasks of a round, and episodes of each. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  readonly set?: readonly string[] | undefined;
  readonly seed?: number | undefined;
  /** The improvement's directory; by default a new one under `runs/`. */
  readonly run?: string | undefined;
  readonly acceptChanges?: boolean | undefined;
}

type Request = Omit<Improvement, 'onRound'>;

/**
 * Resolves what is asked for; nothing is created.
 * @param source A recipe, a run's directory, or the directory of an improvement, which goes on
 * @throws RecipeError, RunError naming what is wrong
 */
export async function requestImprovement(source: string, options: ImprovementOptions): Promise<Request> {
  const begun = await readImprovement(nodeFiles, source);
  if (begun !== undefined) return continuation(source, begun, options);
  const { set = [], seed, proposals = PROPOSALS, tasks = TASKS, samples = SAMPLES } = options;
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
  return {
    recipe,
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
      ...{ agents, proposals, tasks, samples },
    },
  };
}

/** The request of an improvement that was begun before; it may be given more proposals, and another endpoint. */
async function continuation(
  directory: string,
  before: ImprovementRecord,
  { endpoint, model, proposals, acceptChanges, ...others }: ImprovementOptions,
): Promise<Request> {
  const given = Object.entries(others).find(([, value]) => (Array.isArray(value) ? value.length > 0 : value));
  if (given !== undefined)
    throw new RecipeError(`${directory} is an improvement: it goes on as it was begun, --${given[0]} does not apply`);
  const { recipe, checkpoint, codeHash } = await playedOf(
    before.source,
    before.overrides,
    before.checkpoint,
    acceptChanges,
  );
  const spec = endpointOf(endpoint ?? before.endpoint.url, model ?? before.endpoint.model);
  const { result: _, ...record } = before;
  return {
    ...{ recipe, checkpoint, directory },
    endpoint: spec,
    record: {
      ...record,
      codeHash,
      endpoint: { url: spec.url, model: spec.model },
      proposals: proposals ?? before.proposals,
    },
  };
}

type Played = Pick<Improvement, 'recipe' | 'checkpoint'> & Pick<ImprovementRecord, 'source' | 'codeHash'>;

/** What plays: a run's last checkpoint, or the one of this step; or a recipe, all of whose agents may be frozen. */
async function playedOf(
  source: string,
  set: readonly string[],
  step: number | undefined,
  acceptChanges: boolean | undefined,
): Promise<Played> {
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

/** The most episodes that an improvement plays: in rounds, and on held-out tasks. */
export function episodesOf({ recipe, record }: Pick<Improvement, 'recipe' | 'record'>) {
  const { tasks, samples, proposals } = record;
  const { evaluation } = recipe;
  return { rounds: tasks * samples * (1 + 2 * proposals), heldOut: 2 * evaluation.tasks * evaluation.samples };
}
