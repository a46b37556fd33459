import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { EpisodeFile, FeedMessage, FeedMessages, ListedRun, ShownRecord } from '../../../src/runs/analysis.js';
import { type EventsByKind, emptyLog, extendLog } from '../../../src/runs/analysis.js';
import type { Source } from './source/source.js';

/** A run as far as the page has heard of it. */
export interface HeardRun {
  readonly name: string;
  readonly listed: ListedRun | undefined;
  readonly record: ShownRecord | null;
  readonly log: EventsByKind;
  readonly files: readonly EpisodeFile[];
  /** True once all events that were there have come. */
  readonly complete: boolean;
}

export interface Heard {
  readonly list: FeedMessages['list'] | undefined;
  readonly runs: ReadonlyMap<string, HeardRun>;
  readonly problem: string | undefined;
}

const NOTHING: Heard = { list: undefined, runs: new Map(), problem: undefined };
/** Messages within this time are shown together. */
const TOGETHER_MS = 60;

export const SourceContext = createContext<Source | undefined>(undefined);

/** Receives whether the source answers. */
export const LinkContext = createContext<(answers: boolean) => void>(() => {});

export function useSource(): Source {
  const source = useContext(SourceContext);
  if (source === undefined) throw new Error('the page has no source');
  return source;
}

const silent = (name: string): HeardRun => ({
  name,
  listed: undefined,
  record: null,
  log: emptyLog,
  files: [],
  complete: false,
});

function after(heard: Heard, message: FeedMessage): Heard {
  if (message.type === 'list') return { ...heard, list: message.data, problem: undefined };
  if (message.type === 'failed') return { ...heard, problem: message.data.message };
  const { name } = message.data;
  const before = heard.runs.get(name) ?? silent(name);
  const runs = new Map(heard.runs).set(name, runAfter(before, message));
  return { ...heard, runs };
}

function runAfter(run: HeardRun, message: Exclude<FeedMessage, { type: 'list' | 'failed' }>): HeardRun {
  if (message.type === 'run') return { ...run, listed: message.data.listed, record: message.data.record };
  if (message.type === 'files') return { ...run, files: message.data.files };
  const { reset, more, events } = message.data;
  return { ...run, log: extendLog(reset ? emptyLog : run.log, events), complete: !more };
}

/** Follows the folder's list of runs (no names) or some runs. */
export function useHeard(names: readonly string[]): Heard {
  const source = useSource();
  const onLink = useContext(LinkContext);
  const [heard, setHeard] = useState(NOTHING);
  const key = names.join('\n');
  useEffect(() => {
    setHeard(NOTHING);
    let waiting: FeedMessage[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer = undefined;
      const messages = waiting;
      waiting = [];
      setHeard((before) => messages.reduce(after, before));
    };
    const end = source.follow(
      names,
      (message) => {
        waiting.push(message);
        timer ??= setTimeout(show, TOGETHER_MS);
      },
      onLink,
    );
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [source, key]);
  return heard;
}
