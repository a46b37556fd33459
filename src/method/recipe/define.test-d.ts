import { defineBackend } from '@drmas/engine/backends';
import type { Capabilities } from '@drmas/engine/contract';
import type { LossSpec, lossSchema } from '@drmas/engine/loss';
import type { ModelInput, ModelSpec, modelSchema } from '@drmas/engine/model';
import type { TaskSource } from '@drmas/engine/nouns';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { counterfactual } from '../../lab/counterfactual/counterfactual.js';
import type { kto } from '../../lab/kto/kto.js';
import { agent } from '../../teams/team/agent.js';
import { boxed } from '../../teams/team/parsers.js';
import { defineTeam } from '../../teams/team/team.js';
import { defineEstimator } from '../advantage/define-estimator.js';
import type { Estimator, estimatorSchema } from '../advantage/estimators/index.js';
import { defineRecipe } from './define.js';
import { frozen } from './frozen.js';
import type { settingsSchema } from './recipe-schema.js';
import type {
  BackendInput,
  EstimatorInput,
  EvaluationInput,
  LossInput,
  TrainingInput,
  WarmStartInput,
} from './settings-input.js';

declare const tasks: TaskSource;
declare const model: ModelInput;
const team = defineTeam({
  task: z.object({ question: z.string() }),
  agents: { solver: agent(), verifier: agent({ parse: boxed }) },
  play: async ({ task, agents: { solver } }) => (await solver(task.question)).text,
  reward: ({ outcome }) => outcome.length,
});

test('names of agents and policies are checked against the team', () => {
  defineRecipe({ team, tasks, model, agents: { solver: { invalidPenalty: 0.1 } } });
  // @ts-expect-error the team has no agent of this name
  defineRecipe({ team, tasks, model, agents: { sovler: { invalidPenalty: 0.1 } } });
});

test('policies are named like the agents, unless the assignment names them', () => {
  defineRecipe({ team, tasks, model, policies: { verifier: { clipNorm: 1 } } });
  // @ts-expect-error policies are named like the agents
  defineRecipe({ team, tasks, model, policies: { shared: { clipNorm: 1 } } });
  defineRecipe({ team, tasks, model, assign: 'shared', policies: { shared: { clipNorm: 1 } } });
  // @ts-expect-error there is only the shared policy
  defineRecipe({ team, tasks, model, assign: 'shared', policies: { solver: { clipNorm: 1 } } });
});

test('an assignment names a policy for every agent', () => {
  const assign = { solver: 'big', verifier: 'small' } as const;
  defineRecipe({ team, tasks, model, assign, policies: { big: { optimizer: { learningRate: 1e-4 } } } });
  // @ts-expect-error no agent is assigned to this policy
  defineRecipe({ team, tasks, model, assign, policies: { medium: { clipNorm: 1 } } });
  // @ts-expect-error the verifier has no policy
  defineRecipe({ team, tasks, model, assign: { solver: 'big' } });
});

test('choices are unions by type', () => {
  defineRecipe({ team, tasks, model, advantage: { type: 'drmas', spread: 'none' }, loss: { type: 'gspo' } });
  // @ts-expect-error no estimator of this name
  defineRecipe({ team, tasks, model, advantage: { type: 'drmass' } });
  // @ts-expect-error not a key of this loss
  defineRecipe({ team, tasks, model, loss: { type: 'gspo', clip: 0.2 } });
});

test('a plug-in of `use` can be chosen in the section of its kind', () => {
  const raw = defineEstimator({
    type: 'raw',
    schema: { factor: z.number().default(1) },
    source: '',
    formula: '',
    use: '',
    compute: (batch) => batch.rewards,
  });
  const mine = defineBackend({
    type: 'mine',
    schema: { url: z.string() },
    capabilities: {} as Capabilities,
    open: () => Promise.reject(),
  });
  defineRecipe({ team, tasks, model, use: [raw, mine], advantage: { type: 'raw', factor: 2 } });
  defineRecipe({ team, tasks, model, use: [raw], advantage: { type: 'drmas', spread: 'none' } });
  defineRecipe({ team, tasks, model, use: [mine], backend: { type: 'mine', url: 'http://127.0.0.1' } });
  defineRecipe({ team, tasks, model, use: [mine], policies: { solver: { backend: { type: 'mine', url: '' } } } });
  // @ts-expect-error the recipe does not use it
  defineRecipe({ team, tasks, model, use: [mine], advantage: { type: 'raw' } });
  // @ts-expect-error the plug-in has no such setting
  defineRecipe({ team, tasks, model, use: [raw], advantage: { type: 'raw', faktor: 2 } });
  // @ts-expect-error the plug-in needs a URL
  defineRecipe({ team, tasks, model, use: [mine], backend: { type: 'mine' } });
  // @ts-expect-error the plug-in is not an estimator
  defineRecipe({ team, tasks, model, use: [mine], advantage: { type: 'mine', url: '' } });
  // @ts-expect-error not a plug-in
  defineRecipe({ team, tasks, model, use: [{ type: 'raw' }] });
});

test('every estimator, loss and model can be chosen in a recipe', () => {
  expectTypeOf<z.output<typeof estimatorSchema>['type']>().toEqualTypeOf<Estimator['type']>();
  expectTypeOf<z.output<typeof lossSchema>['type']>().toEqualTypeOf<LossSpec['type']>();
  expectTypeOf<z.output<typeof modelSchema>['type']>().toEqualTypeOf<ModelSpec['type']>();
});

test('a frozen agent has no policy', () => {
  const judge = frozen({ url: 'http://127.0.0.1:8000/v1', model: 'judge' });
  defineRecipe({ team, tasks, model, assign: { solver: 'big', verifier: judge }, policies: { big: { clipNorm: 1 } } });
  defineRecipe({ team, tasks, model, assign: { solver: 'big', verifier: frozen(model) } });
  // @ts-expect-error no policy of this name trains
  defineRecipe({ team, tasks, model, assign: { solver: 'big', verifier: judge }, policies: { verifier: {} } });
  // @ts-expect-error the verifier has no policy and no model
  defineRecipe({ team, tasks, model, assign: { solver: judge } });
  // @ts-expect-error an endpoint needs a URL
  frozen({ model: 'judge' });
  // @ts-expect-error not an option of endpoints
  frozen({ url: 'http://127.0.0.1:8000/v1', model: 'judge', timeout: 3 });
});

test('the written sections agree with the schemas', () => {
  type Settings = z.input<ReturnType<typeof settingsSchema>>;
  type Accepted = Omit<Settings, 'advantage' | 'loss'> & {
    readonly advantage?: Settings['advantage'] | z.input<(typeof counterfactual)['schema']>;
    readonly loss?: Settings['loss'] | z.input<(typeof kto)['schema']>;
  };
  interface Written {
    readonly advantage?: EstimatorInput | undefined;
    readonly loss?: LossInput | undefined;
    readonly warmStart?: WarmStartInput | undefined;
    readonly training?: TrainingInput | undefined;
    readonly evaluation?: EvaluationInput | undefined;
    readonly backend?: BackendInput | undefined;
  }
  // An error here means that settings-input.ts is older than the schemas. `npm run check` writes it anew.
  expectTypeOf<Written>().toExtend<Pick<Accepted, keyof Written>>();
  expectTypeOf<Pick<Accepted, keyof Written>>().toExtend<Written>();
});
