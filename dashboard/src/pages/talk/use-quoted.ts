import { useEffect, useState } from 'preact/hooks';
import { LONGEST_TEXT, type ShownTurn, type TalkQuestion, talkRoles } from '../../../../src/runs/analysis.js';
import { runAddress } from '../../routes.js';
import { useSource } from '../../run-store.js';
import type { TurnPlace } from '../../source/source.js';

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

/** The prompt of the turn that an address names. */
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
