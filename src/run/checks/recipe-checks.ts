/** The checks that a recipe must pass beside its schema, which cannot see tasks, models and backends. */
import { alternativesOf, declarationOf } from '../../advantage/estimators/index.js';
import { backendIdentity } from '../../backends/registry.js';
import type { PlayableHandle } from '../../contract/sampling.js';
import { RecipeError } from '../../core/errors.js';
import { RandomStream } from '../../core/random.js';
import { fieldText } from '../../core/task.js';
import { wholeModel } from '../../model/model-spec.js';
import { contextOf } from '../../model/table/choice-table.js';
import { toolFormatNames } from '../../model/tool-formats/index.js';
import type { Assignment } from '../../recipe/assignment.js';
import { suggestion } from '../../recipe/explain.js';
import { backendOfModel, evaluationSampling, type Recipe, samplerOfModel } from '../../recipe/recipe.js';
import type { Tasks } from '../../training/run-state.js';
import { curriculumChecks } from '../../training/step/curriculum.js';
import { evaluationTasks } from '../../training/step/step-tasks.js';
import { drawTrace } from '../../training/task-source.js';
import { type CapabilitiesOf, checkBackends, type Purpose } from './backend-checks.js';
import { type Checks, requireAll } from './check.js';
import { rolloutChecks } from './rollout-checks.js';

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
  requireAll(contextChecks(recipe, assignment));
  requireAll(groupChecks(recipe));
  requireAll(branchChecks(recipe, assignment));
  requireAll(referenceChecks(recipe));
  requireAll(warmStartChecks(recipe, assignment));
  requireAll(sliceChecks(recipe, tasks));
  requireAll(curriculumChecks(recipe, tasks));
  requireAll(rolloutChecks(recipe));
}

/**
 * An agent that calls tools needs a model whose chat template writes calls as its parser reads them. An endpoint's
 * server has both.
 * @throws RecipeError naming agent, format and what the model has
 */
export function checkToolFormats(
  { team }: Recipe,
  { speakerOf }: Assignment,
  models: Readonly<Record<string, Pick<PlayableHandle, 'tokenizer'>>>,
): void {
  for (const [agent, { tools }] of Object.entries(team.agents)) {
    const model = models[speakerOf[agent] ?? ''];
    const format = model?.tokenizer.toolFormat;
    if (tools === undefined || model === undefined || tools === format) continue;
    const reason =
      format === undefined
        ? `writes calls in none of the formats that are read here (${toolFormatNames.join(', ')})`
        : `writes them as '${format}'`;
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
function* contextChecks(recipe: Recipe, { models }: Assignment): Checks {
  for (const { model, agents } of models) {
    const whole = wholeModel(model);
    if (whole.type === 'checkpoint') continue;
    const context = whole.type === 'choice-table' ? contextOf(whole) : whole.context;
    for (const agent of agents) {
      const { sampling, evaluationSampling: apart } = recipe.agents[agent] as Recipe['agents'][string];
      const inEvaluations =
        apart?.maxTokens === undefined ? 'evaluation.sampling' : `agents.${agent}.evaluationSampling`;
      const lengths: [string, number][] = [
        [`agents.${agent}.sampling`, sampling.maxTokens],
        [inEvaluations, evaluationSampling(recipe, agent).maxTokens],
      ];
      for (const [section, maxTokens] of lengths)
        yield {
          path: `${section}.maxTokens`,
          test: maxTokens < context,
          message: `${maxTokens} leave no room for a prompt in the model's context of ${context}`,
        };
    }
  }
}

function* groupChecks({ advantage, agents, training }: Recipe): Checks {
  const { groupSize } = declarationOf(advantage).traits;
  if (groupSize !== undefined)
    yield {
      path: 'training.groupSize',
      test: training.groupSize >= groupSize.least,
      message: `'${advantage.type}' ${groupSize.why}: expected at least ${groupSize.least}`,
    };
  yield {
    path: 'training.filter',
    test: training.filter === undefined || training.groupSize >= 2,
    message: 'compares the episodes of a group: expected training.groupSize to be at least 2',
  };
  const names = Object.keys(agents);
  for (const name of 'shareStatistics' in advantage ? advantage.shareStatistics.flat() : [])
    yield {
      path: 'advantage.shareStatistics',
      test: names.includes(name),
      message: `the team has no agent '${name}'${suggestion(name, names)}`,
    };
}

/** An episode that is played again begins with answers that are known by their random numbers; servers have none. */
function* branchChecks({ advantage }: Recipe, { endpoints }: Assignment): Checks {
  const [endpoint] = endpoints;
  yield {
    path: 'advantage.type',
    test: alternativesOf(advantage) === 0 || endpoint === undefined,
    message: `'${advantage.type}' plays turns again in their context, and the endpoint of ${endpoint?.agents.join(', ')} may answer otherwise: expected models that are held here`,
  };
}

/** A policy may be held near another policy of the recipe. */
function* referenceChecks({ policies }: Recipe): Checks {
  for (const [policy, { kl }] of Object.entries(policies)) {
    if (kl?.reference.type !== 'policy') continue;
    const other = kl.reference.policy;
    const path = `policies.${policy}.kl.reference.policy`;
    yield { path, test: other !== policy, message: 'a policy is never away from itself: expected another one' };
    yield {
      path,
      test: policies[other] !== undefined,
      message: `there is no policy '${other}'${suggestion(other, Object.keys(policies))}`,
    };
  }
}

/** A warm start needs demonstrations of every policy that learns from its own. */
function* warmStartChecks(recipe: Recipe, { taught }: Assignment): Checks {
  const { warmStart, tasks, team } = recipe;
  if (warmStart === undefined) return;
  const { name, trace } = tasks.train;
  yield {
    path: 'warmStart',
    test: taught.length > 0,
    message: 'all policies are tables of choices, which learn from no demonstrations: expected none',
  };
  yield {
    path: 'warmStart',
    test: trace !== undefined,
    message: `the tasks '${name}' generate no traces to learn from`,
  };
  const demonstrated = demonstratedAgents(tasks.train, warmStart.seed);
  const strangers = [...demonstrated].filter((agent) => !(agent in team.agents));
  yield {
    path: 'warmStart',
    test: demonstrated.size > strangers.length,
    message: `the tasks '${name}' have demonstrations for ${strangers.join(', ')}, expected some for ${Object.keys(team.agents).join(', ')}`,
  };
  const path = 'warmStart.share';
  if (warmStart.share === 'base') {
    const models = new Set(taught.map(({ model }) => JSON.stringify(model)));
    yield {
      path,
      test: models.size <= 1,
      message: "policies with different models cannot share a base; expected 'policy'",
    };
    const names = taught.map(({ name }) => name);
    yield {
      path,
      test: new Set(names.map((name) => placeOf(recipe, name))).size <= 1,
      message: `weights are not copied from one backend to another, and ${names.join(', ')} are on several; expected 'policy'`,
    };
    return;
  }
  for (const { name: policy, agents } of taught)
    yield {
      path,
      test: agents.some((agent) => demonstrated.has(agent)),
      message: `the tasks '${name}' generate no traces for ${agents.join(', ')}, so '${policy}' cannot learn from its own; expected 'base'`,
    };
}

/** A text that is equal for models whose weights are copied from one to the other. */
const placeOf = (recipe: Recipe, model: string): string =>
  JSON.stringify([backendIdentity(backendOfModel(recipe, model)), samplerOfModel(recipe, model) === undefined]);

/** Demonstrations that are drawn to see which agents they are for. */
const DRAWN_DEMONSTRATIONS = 2000;

function demonstratedAgents(tasks: Recipe['tasks']['train'], seed: number): ReadonlySet<string> {
  const draw = (i: number) => drawTrace(tasks, new RandomStream('traced agents', seed, i), 'train');
  const agents = Array.from({ length: DRAWN_DEMONSTRATIONS }, (_, i) => draw(i)?.agent);
  return new Set(agents.filter((agent) => agent !== undefined));
}

/** A field with more values identifies tasks and does not divide them. */
const MOST_SLICES = 100;

/** The fields by which an evaluation is divided must be there, and must divide. */
function* sliceChecks({ evaluation: { by = [], tasks: count } }: Recipe, tasks: Tasks): Checks {
  if (by.length === 0) return;
  const evaluated = evaluationTasks(tasks.test, count);
  for (const field of by) {
    const values = new Set(evaluated.map((task) => fieldText(task, field)));
    const fields = Object.keys({ ...evaluated[0]?.metadata });
    const names = fields.length === 0 ? 'their metadata is empty' : `they have ${fields.join(', ')}`;
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
