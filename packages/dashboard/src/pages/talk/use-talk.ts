import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import {
  LONGEST_TEXT,
  type ShownTurn,
  type TalkFacts,
  type TalkQuestion,
  talkRoles,
} from '../../../../../src/runs/analysis.js';
import { runAddress } from '../../routes.js';
import { useSource } from '../../run-store.js';
import type { TurnPlace } from '../../source/source.js';
import { afterMessage, type Exchange } from './exchange.js';

/** The page's questions to the agents of a run, newest first, and the agents that can answer. */
export function useTalk(run: string) {
  const { talk } = useSource();
  const [facts, setFacts] = useState<TalkFacts>();
  const [problem, setProblem] = useState<string>();
  const [exchanges, setExchanges] = useState<readonly Exchange[]>([]);
  const asking = useRef<AbortController | undefined>(undefined);

  const look = useCallback(() => {
    talk?.about(run).then(
      (now) => {
        setFacts(now);
        setProblem(undefined);
      },
      (error: Error) => setProblem(error.message),
    );
  }, [talk, run]);
  useEffect(() => {
    look();
    return () => asking.current?.abort();
  }, [look]);

  const ask = async (question: TalkQuestion) => {
    if (talk === undefined || asking.current !== undefined) return;
    const controller = new AbortController();
    asking.current = controller;
    const latest = (change: (exchange: Exchange) => Exchange) =>
      setExchanges(([first, ...rest]) => (first === undefined ? rest : [change(first), ...rest]));
    setExchanges((before) => [{ question, state: 'waiting', answers: {} }, ...before]);
    try {
      await talk.ask(question, (message) => latest((exchange) => afterMessage(exchange, message)), controller.signal);
    } catch (error) {
      const stopped = controller.signal.aborted;
      latest((exchange) => ({ ...exchange, problem: stopped ? 'stopped' : (error as Error).message }));
    }
    asking.current = undefined;
    latest((exchange) => ({ ...exchange, state: 'over' }));
    look();
  };
  return {
    facts,
    problem,
    exchanges,
    ask,
    stop: () => asking.current?.abort(),
    release: () => talk?.release().then(look),
  };
}

interface Quoted {
  readonly messages: TalkQuestion['messages'];
  readonly problem?: string;
}

const NOTHING: Quoted = { messages: [] };

/** The address that repeats a turn's prompt for its agent; undefined if the prompt cannot be sent as text. */
export function askAddress(run: string, { file, task, sample, turn }: TurnPlace, shown: ShownTurn): string | undefined {
  if (shown.frozen || messagesOf(shown) === undefined) return undefined;
  return runAddress(run, 'talk', { agent: shown.agent, file, task, sample: String(sample), turn: String(turn) });
}

function messagesOf({ messages }: ShownTurn): TalkQuestion['messages'] | undefined {
  const said = messages.flatMap(([role, content]) => {
    const known = talkRoles.find((one) => one === role);
    return known === undefined || content.length > LONGEST_TEXT ? [] : [{ role: known, content }];
  });
  return said.length === messages.length && said.length > 0 ? said : undefined;
}

export function useQuoted(run: string, { file, task, sample, turn }: Readonly<Record<string, string>>): Quoted {
  const source = useSource();
  const [quoted, setQuoted] = useState(NOTHING);
  useEffect(() => {
    if (file === undefined || task === undefined) return;
    source.group(run, file, task).then(
      ({ episodes }) => {
        const episode = episodes.find((one) => one.sample === Number(sample));
        const shown = episode?.turns[Number(turn)];
        setQuoted({ messages: (shown && messagesOf(shown)) ?? [] });
      },
      (error: Error) => setQuoted({ messages: [], problem: error.message }),
    );
  }, [source, run, file, task, sample, turn]);
  return quoted;
}
