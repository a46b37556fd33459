/** Whether the answers of the demonstrations succeed where the agents repeat them in the first step. */
import type { Warning } from '@drmas/engine/events';
import { excerpt } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { type Episode, type Message, messageText, successOf, type Turn } from '@drmas/engine/nouns';
import { playedTurns } from '../../../teams/rollout.js';
import { drawnDemonstrations } from '../play/demonstration-remedy.js';
import type { Played } from '../play/played.js';
import type { RunSettings } from '../run/run-settings.js';

/** Fewer turns that repeat demonstrations say nothing. */
const FEWEST = 6;
/** Answers with at most this share of successes are wrong, if they are at least this share of the turns. */
const WRONG = { successes: 0.1, turns: 0.25 };
/** Two answers to one prompt differ if their shares of successes do so much, in at least this share of the prompts. */
const DIFFERENT = { successes: 0.5, prompts: 0.75 };

interface Repeated {
  readonly prompt: string;
  readonly text: string;
  readonly successes: number[];
  /** Whether the turns are the only ones of their episodes, so that no other turn decides about success. */
  alone: boolean;
}

/**
 * A warning for each agent whose demonstrations are wrong or contradict each other: turns that repeat them do not
 * succeed. It is given in the first step, which the weights of the warm start play.
 */
export function demonstrationWarnings(
  { demonstrations, warmStartShare }: Pick<RunSettings, 'demonstrations' | 'warmStartShare'>,
  { step, all }: Pick<Played, 'step' | 'all'>,
): Warning[] {
  if (step !== 1 || warmStartShare === undefined) return [];
  const agents = new Map<string, Map<string, Repeated>>();
  for (const { agent, messages, response } of drawnDemonstrations(demonstrations)) {
    const answers = agents.get(agent) ?? new Map<string, Repeated>();
    agents.set(agent, answers);
    const prompt = promptOf(messages);
    answers.set(keyOf(prompt, response), { prompt, text: response.trim(), successes: [], alone: true });
  }
  const episodes = all.flatMap((group) => group.episodes.filter(({ failure }) => failure === undefined));
  const [lowest, highest] = [Math.min, Math.max].map((most) => most(...episodes.map(({ score }) => score.team)));
  if (lowest === highest && lowest !== 0) return []; // the reward is at fault, or all answers are right
  for (const episode of episodes) for (const turn of episode.turns) count(agents.get(turn.agent), episode, turn);
  return [...agents].flatMap(([agent, answers]): Warning[] => {
    const repeated = [...answers.values()].filter(({ successes }) => successes.length > 0);
    const says = contradiction(repeated) ?? fault(repeated);
    if (says === undefined) return [];
    return [
      { type: 'warning', code: 'demonstrations', step, agent, message: `step 1: demonstrations of '${agent}' ${says}` },
    ];
  });
}

function count(answers: ReadonlyMap<string, Repeated> | undefined, episode: Episode, turn: Turn): void {
  const answer = answers?.get(keyOf(promptOf(turn.messages), turn.text));
  if (answer === undefined) return;
  answer.successes.push(successOf(episode));
  answer.alone &&= playedTurns(episode.turns).length === 1;
}

const successesOf = ({ successes }: Repeated) => mean(successes);
const turnsOf = (answers: readonly Repeated[]) => answers.reduce((sum, { successes }) => sum + successes.length, 0);

/** Answers to one prompt, some of which succeed and some do not. */
function contradiction(repeated: readonly Repeated[]): string | undefined {
  const prompts = [...new Set(repeated.map(({ prompt }) => prompt))]
    .map((prompt) => repeated.filter((answer) => answer.prompt === prompt))
    .filter(({ length }) => length > 1);
  const pairs = prompts.flatMap((answers) => {
    const [worst, ...better] = answers.toSorted((a, b) => successesOf(a) - successesOf(b));
    const best = better.at(-1);
    if (worst === undefined || best === undefined) return [];
    return successesOf(best) - successesOf(worst) < DIFFERENT.successes ? [] : [{ best, worst }];
  });
  const [first] = pairs;
  if (first === undefined || pairs.length < DIFFERENT.prompts * prompts.length) return undefined;
  if ((['best', 'worst'] as const).some((side) => turnsOf(pairs.map((pair) => pair[side])) < FEWEST)) return undefined;
  const { best, worst } = first;
  return `contradict each other: the answer ${shown(best.text)} to ${shown(best.prompt)} succeeds, and ${shown(worst.text)} does not. Leave out the answers that the team's reward does not accept.`;
}

/** Answers that do not succeed. If others took part in the episodes, only if none of the agent's answers does. */
function fault(repeated: readonly Repeated[]): string | undefined {
  const wrong = repeated.filter((answer) => successesOf(answer) <= WRONG.successes);
  const counted = wrong.length === repeated.length ? wrong : wrong.filter(({ alone }) => alone);
  const [turns, of] = [turnsOf(counted), turnsOf(repeated)];
  const [first] = counted;
  if (first === undefined || turns < FEWEST || turns < WRONG.turns * of) return undefined;
  const others = counted.every(({ alone }) => alone) ? '' : ' Other turns of these episodes may be at fault.';
  return `do not succeed: of ${of} turns that repeat one, ${turns} are of answers without success, such as ${shown(first.text)} to ${shown(first.prompt)}. Compare the demonstrations with what the team's reward accepts.${others}`;
}

const shown = (text: string) => JSON.stringify(excerpt(text));

/** The prompt of an agent without its system prompt, which differs between demonstrations and play. */
const promptOf = (messages: readonly Message[]) =>
  messages
    .filter(({ role }) => role !== 'system')
    .map(messageText)
    .join('\n');

const keyOf = (prompt: string, text: string) => JSON.stringify([prompt, text.trim()]);
