import { test } from 'vitest';
import type { TaskSource } from '../core/task.js';
import type { ModelSpec } from '../model/spec.js';
import { defineRecipe } from './define.js';

declare const tasks: TaskSource;
declare const model: ModelSpec;
const team = { name: 'pair', agents: { solver: {}, verifier: {} } };

test('names of agents and policies are checked against the team', () => {
  defineRecipe({ team, tasks, model, agents: { solver: { invalidPenalty: 0.1 } } });
  // @ts-expect-error the team has no agent of this name
  defineRecipe({ team, tasks, model, agents: { sovler: { invalidPenalty: 0.1 } } });
});

test('policies are named like the agents unless assigned otherwise', () => {
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
  // @ts-expect-error nobody is assigned to this policy
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
