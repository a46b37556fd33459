/**
 * The questions of `paper-search.ts` for a single agent, which writes a query or the answer in each turn. The warm
 * start shows it the team's queries and answers in equal parts.
 */
import { agent, defineRecipe, defineTeam, exactMatch, user } from 'drmas';
import type { Search } from 'drmas/tasks';
import { z } from 'zod';
import search from '../../recipes/search/recipe.js';
import { encyclopedia, encyclopediaSearch } from '../../recipes/search/world.js';

const { maxTurns, topk, retriever, prompt, searcher, answerer } = encyclopediaSearch;

const team = defineTeam({
  name: 'single',
  task: z.object({ question: z.string(), answer: z.string(), corpus: z.string() }),
  agents: {
    single: agent({
      invalidPenalty: 0.01,
      parse: (text) => {
        const [answer, query] = [answerer.parse(text), searcher.parse(text)];
        return answer === undefined && query === undefined ? undefined : { answer, query };
      },
      sampling: { maxTokens: 8 },
    }),
  },
  async play({ task, agents: { single }, signal }) {
    const evidence: Search[] = [];
    for (let turn = 0; turn < maxTurns; turn++) {
      const { value } = await single(prompt({ agent: 'searcher', question: task.question, evidence }));
      if (value?.answer !== undefined) return value;
      if (value?.query === undefined || turn === maxTurns - 1) continue;
      const passages = await retriever(task).search(value.query, topk, signal);
      if (passages.length > 0) evidence.push({ query: value.query, passages });
    }
    return { answer: undefined };
  },
  reward: ({ outcome, task }) => ({ correct: exactMatch(outcome.answer, task.answer) }),
});

/** The demonstrations of the searcher and of the answerer, with prompts of one form. */
const questions = encyclopedia({ demonstrations: { agents: { verifier: 0, searcher: 0.5, answerer: 0.5 } } });
const tasks: typeof questions = {
  ...questions,
  name: 'questions for one agent',
  trace(random, split) {
    const trace = questions.trace?.(random, split);
    const [asked] = trace?.messages ?? [];
    if (trace === undefined || typeof asked?.content !== 'string') throw new Error('expected a demonstration');
    return { ...trace, agent: 'single', messages: [user(asked.content.replace(/ answerer$/, ' searcher'))] };
  },
};

export default defineRecipe({
  ...search.input,
  assign: 'separate',
  team,
  tasks,
  agents: {},
  policies: { single: { optimizer: { learningRate: 1e-3, beta2: 0.98 } } },
});
