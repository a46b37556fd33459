import { madeWith } from '@drmas/engine/errors';
import { z } from 'zod';
import { exactMatch } from '../tasks/grading/question-answering.js';
import type { Retriever, Search } from '../tasks/retrieval/retriever.js';
import { agent } from './agent.js';
import { paperTagged, paperVerdict, requireForm, shownVerdict } from './paper/paper-outputs.js';
import { paperSearchPrompt, paperSystem } from './paper/paper-prompts.js';
import { playPaperSearch } from './paper/paper-search.js';
import { type Parser, tagged, type UsingParser } from './parsers.js';
import { defineTeam } from './team.js';

const searchTask = z.object({
  question: z.string(),
  answer: z.union([z.string(), z.array(z.string()).min(1).readonly()]),
  corpus: z.string().optional(),
});

/** The data of a task of `searchTeam`. */
export type SearchTask = z.output<typeof searchTask>;

/** The content of an agent's prompt. */
export interface SearchPrompt {
  readonly agent: 'verifier' | 'searcher' | 'answerer';
  readonly question: string;
  /** The searches so far, in order. */
  readonly evidence: readonly Search[];
  /** The verifier's output in this step, for the searcher. Only with `form: 'paper'`. */
  readonly teammates?: string;
}

/** The prompt and the parser of one agent of `searchTeam`. */
export interface SearchRoleOptions<Value> {
  /** The system prompt; an empty text means none. */
  readonly system?: string;
  /** The parser of the agent's text. */
  readonly parse?: UsingParser<Value>;
}

/** The options of `searchTeam`. */
export interface SearchTeamOptions {
  /** A retriever for all tasks, or a function from a task to its retriever. */
  readonly retriever: Retriever | ((task: SearchTask) => Retriever);
  /**
   * 'paper': the team plays as in the Dr. MAS paper's code, and its prompts are the options `system` and `prompt`. The
   * searcher reads the verdict, an unreadable answer goes back to the verifier, and an output without one block of
   * thought, or with Chinese characters, is used and penalised. `onLastTurn`, `onUnreadableVerdict`, `onEmptyQuery` and
   * `onNoResults` belong to the other form.
   */
  readonly form?: 'paper';
  /** 'paper': the prompts of the Dr. MAS paper's code. Only with `form: 'paper'`, without `system` and `prompt`. */
  readonly prompts?: 'paper';
  /** The most verdicts in an episode. Default 4. An episode has up to 2 maxTurns + 1 calls of agents. */
  readonly maxTurns?: number;
  /**
   * The team's action after a "no" in the last turn. 'answer': search once more, then answer. 'fail': the episode earns
   * 0, and the answerer acts only after a "yes", as in the Dr. MAS paper's code; an episode then has up to maxTurns - 1
   * searches. Default 'answer'.
   */
  readonly onLastTurn?: 'answer' | 'fail';
  /** The most passages of a search. Default 3. */
  readonly topk?: number;
  /** The meaning of a verdict that is neither yes nor no. Default 'search', which a plain no gets without a penalty. */
  readonly onUnreadableVerdict?: 'search' | 'answer';
  /** The treatment of an invalid query: no search in this turn, or a search for the question. Default 'skip'. */
  readonly onEmptyQuery?: 'skip' | 'question';
  /**
   * The treatment of a query without results: it joins the evidence, so that the searcher sees it, or not. Default
   * 'note'.
   */
  readonly onNoResults?: 'note' | 'skip';
  /** The penalty for an invalid verdict, query or answer. Default 0.01. */
  readonly invalidPenalty?: number;
  /** Decides whether the evidence is enough. */
  readonly verifier?: SearchRoleOptions<'yes' | 'no'>;
  /** Writes a query. */
  readonly searcher?: SearchRoleOptions<string>;
  /** Answers from the evidence. */
  readonly answerer?: SearchRoleOptions<string>;
  /** The prompt of an agent. Default: the question, then the evidence. */
  readonly prompt?: (request: SearchPrompt) => string;
}

const isFunction = (value: unknown) => typeof value === 'function';
const functionOf = <F>() => z.custom<F>(isFunction, 'expected a function');
const role = z.strictObject({ system: z.string().optional(), parse: functionOf<UsingParser<unknown>>().optional() });
/** The options that the paper's form decides. */
const ofOwnForm = ['onLastTurn', 'onUnreadableVerdict', 'onEmptyQuery', 'onNoResults'] as const;

const optionsSchema = z.strictObject({
  retriever: z.custom<SearchTeamOptions['retriever']>(
    (value) => isFunction(value) || isFunction((value as Retriever | undefined)?.search),
    'expected a retriever, or a function that returns one for a task',
  ),
  form: z.literal('paper').optional(),
  prompts: z.literal('paper').optional(),
  maxTurns: z.int().min(1).default(4),
  onLastTurn: z.enum(['answer', 'fail']).default('answer'),
  topk: z.int().min(1).default(3),
  onUnreadableVerdict: z.enum(['search', 'answer']).default('search'),
  onEmptyQuery: z.enum(['skip', 'question']).default('skip'),
  onNoResults: z.enum(['note', 'skip']).default('note'),
  invalidPenalty: z.number().min(0).default(0.01),
  verifier: role.optional(),
  searcher: role.optional(),
  answerer: role.optional(),
  prompt: functionOf<(request: SearchPrompt) => string>().default(() => readablePrompt),
});

/**
 * Creates a team in which a verifier decides whether the evidence is enough for the question. After a no, a searcher
 * writes a query whose results join the evidence; after a yes, or the last turn, an answerer answers. The reward is 1
 * for an answer that matches (SQuAD's exact match). A search that fails ends the episode.
 *
 * The option `onLastTurn` decides whether the answerer's rewards differ from the team's. With 'answer' the answerer is
 * called in every episode, with 'fail' only in episodes in which the verifier found the evidence sufficient.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { searchTeam } from 'drmas';
 * import { bm25Retriever, readCorpus } from 'drmas/tasks';
 *
 * const team = searchTeam({ retriever: bm25Retriever(await readCorpus('passages.jsonl')) });
 * ```
 */
export function searchTeam(options: SearchTeamOptions) {
  const checked = madeWith(optionsSchema, options, 'searchTeam');
  requireForm('searchTeam', options, ofOwnForm, [options.verifier, options.searcher, options.answerer]);
  const { retriever, maxTurns, onLastTurn, topk, onUnreadableVerdict, onEmptyQuery, onNoResults } = checked;
  const { invalidPenalty, prompt, form, prompts } = checked;
  const parsers = form === 'paper' ? paperParsers : ownParsers;
  const roleOf = (name: SearchPrompt['agent']) =>
    systemOf(options[name], prompts === 'paper' ? paperSystem : systems[name]);
  const retrieverOf = (task: SearchTask) => (typeof retriever === 'function' ? retriever(task) : retriever);
  return defineTeam({
    name: 'search',
    task: searchTask,
    agents: {
      verifier: agent({
        ...roleOf('verifier'),
        parse: options.verifier?.parse ?? parsers.verifier,
        invalidPenalty,
      }),
      searcher: agent({
        ...roleOf('searcher'),
        parse: options.searcher?.parse ?? parsers.searcher,
        invalidPenalty,
      }),
      answerer: agent({
        ...roleOf('answerer'),
        parse: options.answerer?.parse ?? parsers.answerer,
        invalidPenalty,
      }),
    },
    async prepare({ task, signal }) {
      await retrieverOf(task).check?.(signal);
    },
    async play({ task, agents: { verifier, searcher, answerer }, signal }) {
      const { question } = task;
      const source = retrieverOf(task);
      if (form === 'paper')
        return playPaperSearch({
          question,
          agents: { verifier, searcher, answerer },
          retriever: source,
          maxTurns,
          topk,
          signal,
          prompt: (agent, { evidence, ...state }) => {
            if (prompts === 'paper') return paperSearchPrompt(agent, state);
            const teammates = agent === 'searcher' ? state.context : '';
            return prompt({ agent, question, evidence, ...(teammates === '' ? {} : { teammates }) });
          },
        });
      const evidence: Search[] = [];
      const promptFor = (agent: SearchPrompt['agent']) => prompt({ agent, question, evidence });
      for (let turn = 0; turn < maxTurns; turn++) {
        const verdict = await verifier(promptFor('verifier'));
        const enough = verdict.value ?? (onUnreadableVerdict === 'answer' ? 'yes' : 'no');
        if (enough === 'yes') break;
        if (onLastTurn === 'fail' && turn === maxTurns - 1) return { answer: undefined };
        const written = await searcher(promptFor('searcher'));
        const query = written.value ?? (onEmptyQuery === 'question' ? question : undefined);
        if (query === undefined) continue;
        const passages = await source.search(query, topk, signal);
        if (passages.length > 0 || onNoResults === 'note') evidence.push({ query, passages });
      }
      const answer = await answerer(promptFor('answerer'));
      return { answer: answer.value };
    },
    reward: ({ outcome, task }) => ({ correct: exactMatch(outcome.answer, task.answer) }),
  });
}

const systems = {
  verifier:
    'Decide whether the evidence is enough to answer the question. End with <verify>yes</verify> or <verify>no</verify>.',
  searcher: 'Write a search query for what is still missing. End with <search>the query</search>.',
  answerer: 'Answer the question from the evidence, as briefly as possible. End with <answer>the answer</answer>.',
};

function systemOf(options: SearchRoleOptions<unknown> | undefined, fallback: string): { system?: string } {
  const system = options?.system ?? fallback;
  return system === '' ? {} : { system };
}

const taggedVerdict: Parser<'yes' | 'no'> = (text) => {
  const word = tagged('verify')(text)?.toLowerCase();
  return word === 'yes' || word === 'no' ? word : undefined;
};

const ownParsers = { verifier: taggedVerdict, searcher: tagged('search'), answerer: tagged('answer') };
const paperParsers = {
  verifier: paperVerdict(['yes', 'no'], (text) => shownVerdict(text).toLowerCase()),
  searcher: paperTagged('search'),
  answerer: paperTagged('answer'),
};

function readablePrompt({ question, evidence, teammates }: SearchPrompt): string {
  const searches = evidence.map(({ query, passages }) => {
    const lines = passages.map(({ title, text }) => `- ${title === undefined ? '' : `${title}: `}${text}`);
    return [`Search: ${query}`, ...(lines.length > 0 ? lines : ['- nothing found'])].join('\n');
  });
  const written = searches.length > 0 ? searches : ['none yet'];
  return [`Question: ${question}`, 'Evidence:', ...written, ...(teammates === undefined ? [] : [teammates])].join('\n');
}
