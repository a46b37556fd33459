/**
 * The team `escalation` with two experts, on a mixture of two kinds of tickets: three of four are about routers, one is
 * about phones. All agents read words of one vocabulary, half of the episodes call an expert, and the expert for phones
 * is called least. In evaluations all tickets need an expert. research/plans/trunk.md
 */
import { defineRecipe, mix, type RecipeDefinition, type TaskSource } from 'drmas';
import { escalation } from './escalation.js';

const { tasks, ...rest } = escalation(2).input;
const isSource = (value: unknown): value is TaskSource =>
  typeof value === 'object' && value !== null && 'load' in value;
if (!isSource(tasks)) throw new TypeError('expected one source of tickets');

/** The tickets and demonstrations about a product. */
function about(product: string, source: TaskSource): TaskSource {
  const { trace: demonstrate } = source;
  if (demonstrate === undefined) throw new TypeError('expected demonstrations');
  return {
    ...source,
    name: product,
    configure: (settings) => about(product, source.configure?.(settings) ?? source),
    async load(...given) {
      const set = await source.load(...given);
      const indices = Array.from({ length: set.size }, (_, i) => i).filter((i) => set.at(i).id.includes(product));
      return { name: product, size: indices.length, at: (index) => set.at(indices[index % indices.length] ?? 0) };
    },
    trace(random, split) {
      for (;;) {
        const trace = demonstrate(random, split);
        if (JSON.stringify(trace.messages).includes(product)) return trace;
      }
    },
  };
}

const kinds = (rare: number) => {
  const source = tasks.configure?.({ ...tasks.settings, rare }) ?? tasks;
  return { router: about('router', source), phone: about('phone', source) };
};

const recipe: RecipeDefinition = defineRecipe({
  ...rest,
  tasks: { train: mix(kinds(0.5), [3, 1]), test: mix(kinds(1)) },
});

export default recipe;
