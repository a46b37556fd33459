/** A run, and all that drmas says about it: warnings, the reason why it ended, lines about agents that did not move. */
import type { ScoredEvaluation } from '@drmas/engine/events';
import { isScored } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { defineRecipe, type RecipeInput } from '../../src/method/recipe/define.js';
import { howToMove, unmovedAgents } from '../../src/runs/analysis/trouble.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { createRun, eventsOf } from './tiny-run.js';

/** @returns What is said, in order: warnings, `end` for the end of a run, `unmoved`; and the first and last success */
export async function saidIn(root: string, input: RecipeInput) {
  const recipe = resolveRecipe(defineRecipe(input));
  const run = await createRun(root, recipe);
  const ended = await executeRun(recipe, run, nodeHost({ threads: 1 })).then(
    () => [],
    (error: Error) => [{ code: 'end', message: error.message }],
  );
  const events = await eventsOf(run);
  const warnings = events.flatMap((event) => (event.type === 'warning' ? [event] : []));
  const steps = events.filter((event) => event.type === 'step');
  const started = events.find((event) => event.type === 'run.started');
  const last = events.findLast(
    (event): event is typeof event & ScoredEvaluation => event.type === 'evaluation' && isScored(event),
  );
  const unmoved = unmovedAgents(steps, { headline: 'score', last }).map((line) => {
    return { code: 'unmoved', message: `${line}. ${howToMove(steps, started)}` };
  });
  return {
    said: [...warnings, ...ended, ...unmoved].map(({ code, message }) => ({ code, message })),
    success: [steps[0]?.success ?? 0, steps.at(-1)?.success ?? 0] as const,
  };
}
