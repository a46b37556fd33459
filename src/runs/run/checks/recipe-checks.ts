/** The checks of a recipe that its schema cannot make, because they need tasks, models and backends. */

import { backendIdentity, type PlayableHandle } from '@drmas/engine/contract';
import { isObject, RecipeError, suggestion } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import { isOtherModel, modelKindOf, wholeModel } from '@drmas/engine/model';
import { fieldText, type Task } from '@drmas/engine/nouns';
import { toolFormatNames } from '@drmas/engine/tool-calls';
import { loneEpisodes, type OpenEstimator } from '../../../method/advantage.js';
import {
  curriculumChecks,
  drawTrace,
  evaluatedTasks,
  evaluationTasks,
  type SignalSettings,
  stalenessOf,
  stopChecks,
  type Tasks,
  wantedSignals,
} from '../../../method/index.js';
import {
  type Assignment,
  backendOfModel,
  evaluationSampling,
  lossPath,
  lossSettings,
  pricesOf,
  type Recipe,
  samplerOfModel,
} from '../../../method/recipe.js';
import { type CapabilitiesOf, type Checks, checkBackends, type Purpose, requireAll } from './backend-checks.js';

/** @throws RecipeError with the path of the first value that is wrong */
export function checkRecipe(
  recipe: Recipe,
  assignment: Assignment,
  can: CapabilitiesOf,
  tasks: Tasks,
  purpose: Purpose = 'training',
): void {
  requireAll(taskChecks(tasks));
  checkBackends(recipe, assignment, can, purpose);
  const { agents, estimator, training, evaluation, warmStart } = recipe;
  if (purpose === 'training') requireAll(stepSizeChecks(training, recipe.policies, estimator, warmStart, tasks.train));
  requireAll(evaluationSizeChecks(evaluation, tasks.test));
  requireAll(contextChecks(agents, evaluation, assignment));
  requireAll(groupChecks(Object.keys(agents), training, estimator));
  if (purpose === 'training') requireAll(loneEpisodeChecks(Object.keys(agents), training, estimator));
  requireAll(refillChecks(training, tasks));
  requireAll(penaltyChecks(agents, training, estimator));
  requireAll(signalChecks(recipe, assignment));
  requireAll(groupRewardChecks(recipe.team, recipe));
  // Weights can be copied between models with equal places.
  const placeOf = (model: string): string =>
    JSON.stringify([backendIdentity(backendOfModel(recipe, model)), samplerOfModel(recipe, model) === undefined]);
  // An evaluation in which nobody trains has nothing to warm up.
  if (warmStart !== undefined && assignment.models.length > 0)
    requireAll(warmStartChecks(warmStart, recipe, assignment, placeOf));
  requireAll(sliceChecks(evaluation, tasks));
  if (purpose === 'training') requireAll(curriculumChecks(recipe, tasks));
  requireAll(rolloutChecks(recipe));
  const priced = Object.keys(pricesOf(recipe)).length > 0;
  requireAll(stopChecks(training, evaluation, { priced, staleness: stalenessOf(recipe.rollout) }));
}

/**
 * The model's chat template must write calls as the agent's parser reads them; an endpoint's server has both.
 * @throws RecipeError with the agent, its format and the model's format
 */
export function checkToolFormats(
  team: Recipe['team'],
  { speakerOf }: Assignment,
  models: Readonly<Record<string, Pick<PlayableHandle, 'tokenizer'>>>,
): void {
  for (const [agent, { tools }] of Object.entries(team.agents)) {
    const model = models[speakerOf[agent] ?? ''];
    const format = model?.tokenizer.toolFormat;
    if (tools === undefined || model === undefined || tools === format) continue;
    const reason =
      format === undefined
        ? `writes calls in none of the formats that drmas reads (${toolFormatNames.join(', ')})`
        : `writes them as '${format}': write agent({ tools: '${format}' })`;
    throw new RecipeError(
      `calls tools in the format '${tools}', but its model's chat template ${reason}`,
      `agents.${agent}`,
    );
  }
}

function* taskChecks(tasks: Tasks): Checks {
  for (const split of ['train', 'test'] as const)
    yield { path: `tasks.${split}`, test: tasks[split].size >= 1, message: 'there are no tasks' };
}

/** A response must leave room for a prompt in the model's context. */
function* contextChecks(settings: Recipe['agents'], evaluation: Recipe['evaluation'], { models }: Assignment): Checks {
  for (const { model, agents } of models) {
    const whole = wholeModel(model);
    if (whole.type === 'checkpoint') continue;
    const { context } = isOtherModel(whole) ? modelKindOf(whole).facts(whole) : whole;
    for (const agent of agents) {
      const { sampling, evaluationSampling: apart } = settings[agent] as Recipe['agents'][string];
      const inEvaluations =
        apart?.maxTokens === undefined ? 'evaluation.sampling' : `agents.${agent}.evaluationSampling`;
      const lengths: [string, number][] = [
        [`agents.${agent}.sampling`, sampling.maxTokens],
        [inEvaluations, evaluationSampling({ agents: settings, evaluation }, agent).maxTokens],
      ];
      for (const [section, maxTokens] of lengths)
        yield {
          path: `${section}.maxTokens`,
          test: maxTokens < context,
          message: `${maxTokens} leaves no room for a prompt in the model's context of ${context}`,
        };
    }
  }
}

/** The most episodes, tasks or updates of a step, which memory holds together. Recipes of strangers may name more. */
const MOST = 1_000_000;

/** Factors of a number, by the path of the setting that gives each. */
type Factors = readonly (readonly [path: string, factor: number])[];

/** @param whole The words before the product: `#` stands for it */
function* productChecks(whole: string, factors: Factors): Checks {
  const count = factors.reduce((product, [, factor]) => product * factor, 1);
  const [path] = factors.reduce((largest, each) => (each[1] > largest[1] ? each : largest));
  yield { path, test: count <= MOST, message: `${whole.replace('#', String(count))}, expected at most ${MOST}` };
}

function* stepSizeChecks(
  { tasksPerStep, groupSize, filter, curriculum }: Recipe['training'],
  policies: Recipe['policies'],
  { choices }: OpenEstimator,
  { batch = 1 }: Partial<NonNullable<Recipe['warmStart']>> = {},
  train: Tasks['train'],
): Checks {
  const tasks = ['training.tasksPerStep', tasksPerStep] as const;
  const episodes = [tasks, ['training.groupSize', groupSize]] as const;
  const refill = filter?.type === 'equal-outcomes' ? filter.refill : undefined;
  // No round comes after the last task of a set.
  const rounds = Math.min(refill?.maxRounds ?? 1, Math.ceil(train.size / tasksPerStep));
  const { alternatives = 1 } = choices as { readonly alternatives?: number };
  yield* productChecks('a step would have # episodes', episodes);
  yield* productChecks('a step would have # rounds', [['training.filter.refill.maxRounds', rounds]]);
  yield* productChecks('a step would choose among # tasks', [
    tasks,
    ['training.curriculum.candidates', curriculum?.candidates ?? 1],
  ]);
  yield* productChecks('a step would play # episodes again', [...episodes, ['advantage.alternatives', alternatives]]);
  for (const [policy, settings] of Object.entries(policies))
    for (const [path, model] of Object.entries({ [policy]: settings, [`${policy}.critic`]: settings.critic }))
      yield* productChecks('a step would have # updates', [
        [`policies.${path}.epochs`, model?.epochs ?? 1],
        [`policies.${path}.miniBatches`, model?.miniBatches ?? 1],
      ]);
  yield* productChecks('a step would have # demonstrations', [['warmStart.batch', batch]]);
}

function* evaluationSizeChecks({ tasks, samples, samplesDuring = samples }: Recipe['evaluation'], test: Tasks['test']) {
  const evaluated = ['evaluation.tasks', evaluatedTasks(test, tasks)] as const;
  for (const [path, factor] of Object.entries({ samples, samplesDuring }))
    yield* productChecks('an evaluation would have # episodes', [evaluated, [`evaluation.${path}`, factor]]);
}

function* groupChecks(
  agents: readonly string[],
  training: Recipe['training'],
  { type, traits, settings, choices, unused }: OpenEstimator,
): Checks {
  const { groupSize } = traits;
  if (groupSize !== undefined)
    yield {
      path: 'training.groupSize',
      test: training.groupSize >= groupSize.least,
      message: `'${type}' ${groupSize.why}: expected at least ${groupSize.least}`,
    };
  yield {
    path: 'training.filter',
    test: training.filter === undefined || training.groupSize >= 2,
    message: 'compares the episodes of a group: expected training.groupSize to be at least 2',
  };
  yield {
    path: 'training.filter.type',
    test: training.filter?.type !== 'variance' || training.tasksPerStep >= 2,
    message: "'variance' keeps at least one group: expected training.tasksPerStep to be at least 2",
  };
  yield {
    path: 'training.partWeights',
    test: training.partWeights === undefined || traits.weighsParts !== true,
    message: `'${type}' weighs parts after it has normalised them: expected advantage.weights instead`,
  };
  for (const name of unused)
    yield {
      path: `advantage.${name}`,
      test: false,
      message: `has no effect with the other choices of '${type}': leave it out`,
    };
  const { episodeAgents = [] } = choices as { readonly episodeAgents?: readonly string[] };
  const named = { shareStatistics: settings.shareStatistics.flat(), episodeAgents };
  for (const [choice, names] of Object.entries(named))
    for (const name of names)
      yield {
        path: `advantage.${choice}`,
        test: agents.includes(name),
        message: `the team has no agent '${name}'${suggestion(name, agents)}`,
      };
}

/** Groups of one teach nothing if the estimator compares their episodes alone. */
function* loneEpisodeChecks(
  agents: readonly string[],
  { groupSize }: Recipe['training'],
  estimator: OpenEstimator,
): Checks {
  if (groupSize > 1) return;
  const { compares, silent } = loneEpisodes(estimator, agents);
  const { singleton } = estimator.choices;
  const choice = singleton === undefined ? '' : ` with advantage.singleton=${singleton}`;
  yield {
    path: 'training.groupSize',
    test: !compares || !silent,
    message: `'${estimator.type}' compares the episodes of a task, and one episode teaches nothing${choice}: expected at least 2`,
  };
  for (const name of estimator.unusedAlone)
    yield {
      path: `advantage.${name}`,
      test: false,
      message: 'has no effect on one episode of a task: leave it out, or set training.groupSize to at least 2',
    };
}

/** Without further tasks no round can follow the first. */
function* refillChecks({ filter, tasksPerStep }: Recipe['training'], { train }: Pick<Tasks, 'train'>): Checks {
  yield {
    path: 'training.filter.refill',
    test: filter?.type !== 'equal-outcomes' || filter.refill === undefined || train.size > tasksPerStep,
    message: `plays further tasks, and a step plays all ${train.size}: expected fewer training.tasksPerStep`,
  };
}

/** A penalty that the estimator leaves out, and that no filter reads, would have no effect. */
function* penaltyChecks(
  agents: Recipe['agents'],
  { filter }: Recipe['training'],
  { type, penalties }: OpenEstimator,
): Checks {
  const filtered = filter?.score === 'mean' || filter?.score === 'outcome+penalties';
  for (const [agent, { invalidPenalty }] of Object.entries(agents))
    yield {
      path: `agents.${agent}.invalidPenalty`,
      test: invalidPenalty === 0 || penalties !== 'left out' || filtered,
      message: `'${type}' leaves penalties out with these choices: expected 0`,
    };
}

function* signalChecks(settings: SignalSettings, assignment: Assignment): Checks {
  for (const { checks } of wantedSignals(settings)) if (checks !== undefined) yield* checks(settings, assignment);
}

/** A signal that plays single episodes has no group for `rewardGroup`. */
function* groupRewardChecks(team: Recipe['team'], settings: SignalSettings): Checks {
  yield {
    path: 'advantage.type',
    test: team.rewardGroup === undefined || !wantedSignals(settings).some(({ play }) => play !== undefined),
    message: `'${settings.estimator.type}' plays single episodes, and the team's rewardGroup rewards whole groups`,
  };
}

/** A warm start needs demonstrations of every policy that learns from its own. */
function* warmStartChecks(
  { seed, share }: NonNullable<Recipe['warmStart']>,
  { tasks: { train: tasks }, agents, policies }: Pick<Recipe, 'tasks' | 'agents' | 'policies'>,
  { demonstrationLearners }: Assignment,
  placeOf: (model: string) => string,
): Checks {
  const { name, trace } = tasks;
  const team = Object.keys(agents);
  yield {
    path: 'warmStart',
    test: demonstrationLearners.length > 0,
    message: 'all policies are tables of choices, which cannot learn from demonstrations: expected none',
  };
  yield {
    path: 'warmStart',
    test: trace !== undefined,
    message: `the tasks '${name}' generate no traces to learn from`,
  };
  const demonstrated = demonstratedAgents(tasks, seed);
  const strangers = [...demonstrated].filter((agent) => !team.includes(agent));
  yield {
    path: 'warmStart',
    test: demonstrated.size > strangers.length,
    message: `the tasks '${name}' have demonstrations for ${strangers.join(', ')}, expected some for ${team.join(', ')}`,
  };
  const path = 'warmStart.share';
  if (share === 'base') {
    const modelOf = ({ name, model }: (typeof demonstrationLearners)[number]) =>
      JSON.stringify([model, ...(policies[name]?.agentAdapters === undefined ? [] : [name])]);
    const models = new Set(demonstrationLearners.map(modelOf));
    yield {
      path,
      test: models.size <= 1,
      message: "policies with different models cannot share a base: set warmStart: { share: 'policy' }",
    };
    const names = demonstrationLearners.map(({ name }) => name);
    yield {
      path,
      test: new Set(names.map((name) => placeOf(name))).size <= 1,
      message: `weights cannot be copied between backends, and ${names.join(', ')} are on several; expected 'policy'`,
    };
    return;
  }
  for (const { name: policy, agents } of demonstrationLearners)
    yield {
      path,
      test: agents.some((agent) => demonstrated.has(agent)),
      message: `the tasks '${name}' generate no traces for ${agents.join(', ')}, so '${policy}' has no demonstrations of its own; expected 'base'`,
    };
}

/** The number of sampled demonstrations that show which agents have some. */
const DRAWN_DEMONSTRATIONS = 2000;

function demonstratedAgents(tasks: Recipe['tasks']['train'], seed: number): ReadonlySet<string> {
  const draw = (i: number) => drawTrace(tasks, new RandomStream('traced agents', seed, i), 'train');
  const agents = Array.from({ length: DRAWN_DEMONSTRATIONS }, (_, i) => draw(i)?.agent);
  return new Set(agents.filter((agent) => agent !== undefined));
}

/** A field with more values identifies tasks instead of dividing them. */
const MOST_SLICES = 100;

/** The fields that divide an evaluation must exist, and must have several values. */
function* sliceChecks({ by = [], tasks: count }: Recipe['evaluation'], tasks: Tasks): Checks {
  if (by.length === 0) return;
  const evaluated = evaluationTasks(tasks.test, count);
  const fields = [...new Set(evaluated.flatMap(fieldsOf))];
  const names = fields.length === 0 ? 'they have no field with a text or a number' : `they have ${fields.join(', ')}`;
  for (const field of by) {
    const values = new Set(evaluated.map((task) => fieldText(task, field)));
    yield {
      path: 'evaluation.by',
      test: values.size > 1 || !values.has(undefined),
      message: `no evaluated task has the field '${field}' (${names})`,
    };
    yield {
      path: 'evaluation.by',
      test: values.size <= MOST_SLICES,
      message: `the field '${field}' has ${values.size} values, expected at most ${MOST_SLICES}`,
    };
  }
}

function fieldsOf(task: Task): string[] {
  const names = Object.keys({ ...task.metadata, ...(isObject(task.data) ? task.data : {}) });
  return names.filter((name) => fieldText(task, name) !== undefined);
}

/** For more updates a loss must correct for the weights that played. */
const MOST_UNCORRECTED = 4;

function* rolloutChecks(recipe: Recipe): Checks {
  const { rollout, gateway } = recipe;
  const isFile = recipe.code !== undefined;
  yield* isolationChecks(rollout, gateway, isFile);
  yield* queueChecks(rollout, isFile);
  const staleness = stalenessOf(rollout);
  const path = 'rollout.staleness';
  for (const policy of Object.keys(recipe.policies)) {
    const loss = lossSettings(recipe, policy);
    yield {
      path,
      test:
        staleness <= MOST_UNCORRECTED || ('importanceCorrection' in loss && loss.importanceCorrection !== undefined),
      message: `above ${MOST_UNCORRECTED} the weights that played differ too much: expected ${lossPath(recipe, policy)}.importanceCorrection`,
    };
  }
}

/** @param isFile Whether a file defines the recipe, and not a program */
function* queueChecks(rollout: Recipe['rollout'], isFile: boolean): Checks {
  if (rollout?.type !== 'queue') return;
  const url = rollout.url !== undefined;
  yield {
    path: 'rollout.url',
    test: url,
    message: 'is missing; expected the address of Redis, such as redis://127.0.0.1:6379',
  };
  const message = 'workers load the recipe from its file, but this recipe was defined by a program';
  yield { path: 'rollout.type', test: isFile, message };
  const path = 'rollout.isolate';
  yield {
    path,
    test: rollout.isolate === false,
    message: 'workers are already separate processes: choose one of the two',
  };
}

function* isolationChecks(rollout: Recipe['rollout'], gateway: Recipe['gateway'], isFile: boolean): Checks {
  const path = 'rollout.isolate';
  const inProgram = (rollout?.isolate ?? false) === false;
  const message = 'threads load the recipe from its file, but this recipe was defined by a program';
  yield { path, test: inProgram || isFile, message };
  yield {
    path,
    test: inProgram || gateway === undefined,
    message: 'a gateway needs episodes that play in the same thread: choose one of the two',
  };
}
