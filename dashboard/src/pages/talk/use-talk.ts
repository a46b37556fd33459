import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { TalkFacts, TalkQuestion } from '../../../../src/runs/analysis.js';
import { useSource } from '../../run-store.js';
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
    ...{ facts, problem, exchanges, ask },
    stop: () => asking.current?.abort(),
    release: () => talk?.release().then(look),
  };
}
