/** The episode of the Dr. MAS paper's search team (langfengQ/DrMAS at 19c632b). */
import type { Retriever, Search } from '../../tasks/retrieval/retriever.js';
import type { Ask } from '../team.js';
import { shownPassages, shownVerdict } from './paper-outputs.js';
import { outputOf, type PaperSearchState, searchLine } from './paper-prompts.js';

interface PaperSearchEpisode {
  readonly question: string;
  readonly agents: {
    readonly verifier: Ask<'yes' | 'no'>;
    readonly searcher: Ask<string>;
    readonly answerer: Ask<string>;
  };
  readonly retriever: Retriever;
  readonly maxTurns: number;
  readonly topk: number;
  readonly signal: AbortSignal;
  prompt(
    agent: 'verifier' | 'searcher' | 'answerer',
    state: PaperSearchState & { readonly evidence: readonly Search[] },
  ): string;
}

/**
 * Plays one episode. In each step the verifier sends the team to the searcher, who reads the verdict, or to the
 * answerer. An answer ends the episode; an unreadable answer or query costs the step and joins the history. After a no
 * in the last step no agent is called. The answer is the last one in all texts that were written and found.
 */
export async function playPaperSearch(episode: PaperSearchEpisode): Promise<{ answer: string | undefined }> {
  const { question, agents, retriever, maxTurns, topk, signal, prompt } = episode;
  const evidence: Search[] = [];
  const history: string[] = [];
  let written = '';
  let observation = question;
  for (let step = 1; ; step++) {
    const options = { envStep: step - 1, observation };
    const state = { question, step, history, evidence };
    const verdict = await agents.verifier(prompt('verifier', { ...state, context: '' }), options);
    const context = outputOf('Verifier Agent', shownVerdict(verdict.text));
    let action = '';
    let query: string | undefined;
    if (verdict.value !== 'no') {
      const { value } = await agents.answerer(prompt('answerer', { ...state, context }), options);
      if (value !== undefined) action = `<answer>${value}</answer>`;
    } else if (step < maxTurns) {
      query = (await agents.searcher(prompt('searcher', { ...state, context }), options)).value;
      if (query !== undefined) action = `<search>${query}</search>`;
    }
    written += action;
    // A query that contains an answer ends the episode too.
    if (step === maxTurns || (action.includes('<answer>') && action.includes('</answer>')))
      return { answer: lastAnswer(written) };
    observation = '';
    if (query !== undefined) {
      const passages = await retriever.search(query, topk, signal);
      evidence.push({ query, passages });
      observation = shownPassages(passages);
      written += observation;
    }
    history.push(searchLine(step, action, observation));
  }
}

/** The text of the last answer in tags. A text may begin many answers that it does not end. */
function lastAnswer(text: string): string | undefined {
  const ended = text.split('</answer>').slice(0, -1);
  const last = ended.findLast((part) => part.includes('<answer>'));
  return last?.slice(last.indexOf('<answer>') + '<answer>'.length).trim();
}
