import { grouped, significant } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import {
  type EpisodeDot,
  type EpisodeFile,
  type GroupPage,
  type GroupQuery,
  type GroupRow,
  groupKinds,
  type ShownGroupKind,
} from '../../../../../src/runs/analysis.js';
import { Choice, NumberField, numberOr } from '../../parts/fields.js';
import { clean } from '../../parts/texts.js';
import { VirtualList } from '../../parts/virtual-list.js';
import { go, type Route } from '../../routes.js';
import { type HeardRun, useSource } from '../../run-store.js';
import { GroupView } from './group-view.js';

const ROW_HEIGHT = 44;

interface EpisodesTabProps {
  readonly run: HeardRun;
  readonly query: Extract<Route, { page: 'run' }>['query'];
}

/** The episodes of a run: a file's groups in a list, the chosen one's episodes side by side. */
export function EpisodesTab({ run, query }: EpisodesTabProps) {
  const source = useSource();
  const files = useMemo(() => orderedFiles(run.files), [run.files]);
  const file = chosenFile(files, query, run.log.steps);
  const [kind, setKind] = useState<ShownGroupKind>('all');
  const [agent, setAgent] = useState('');
  const [text, setText] = useState('');
  const [low, setLow] = useState('');
  const [high, setHigh] = useState('');
  const asked = useMemo(
    (): GroupQuery | undefined =>
      file === undefined
        ? undefined
        : { file: file.name, kind, agent, text: text.trim(), low: numberOr(low), high: numberOr(high) },
    [file?.name, kind, agent, text, low, high],
  );
  const { counts, rows, problem, onRange } = useGroups(run.name, asked);
  const [picked, setPicked] = useState<number>();
  useEffect(() => setPicked(undefined), [asked]);
  const chosen = picked ?? tellingRow(rows);
  if (file === undefined)
    return (
      <p class="empty">
        No episodes were kept yet. <code>training.keepEpisodes</code> says which steps keep theirs.
      </p>
    );
  const lacking = source.lacks(run.name);
  const show = (name: string) => go({ page: 'run', name: run.name, tab: 'episodes', query: { file: name } });
  const beside = (by: number) => files[files.indexOf(file) + by];
  const task = rows.get(chosen)?.task;
  const wanted = query.task !== undefined && picked === undefined ? query.task : undefined;
  return (
    <div class="episodes">
      <div class="controls">
        <button type="button" disabled={beside(-1) === undefined} onClick={() => show(beside(-1)?.name ?? '')}>
          ←
        </button>
        <Choice
          label="at"
          value={file.name}
          options={files.map(({ name }) => [name, fileTitle(name)])}
          onChange={show}
        />
        <button type="button" disabled={beside(1) === undefined} onClick={() => show(beside(1)?.name ?? '')}>
          →
        </button>
        <Choice
          label="groups"
          value={kind}
          options={groupKinds.map((one) => [one, one])}
          onChange={(value) => setKind(groupKinds.find((one) => one === value) ?? 'all')}
        />
        <Choice
          label="agent"
          value={agent}
          options={[['', 'any'], ...(counts?.agents ?? run.log.agents).map((one) => [one, clean(one)] as const)]}
          onChange={setAgent}
        />
        <NumberField label="reward" placeholder="from" name="reward from" value={low} onChange={setLow} />
        <NumberField placeholder="to" name="reward to" value={high} onChange={setHigh} />
        <input
          type="search"
          placeholder="words in a text"
          aria-label="words in a text"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      {lacking !== '' && <p class="faint">{lacking}</p>}
      {problem !== undefined && <p class="notice bad">{clean(problem)}</p>}
      <div class="browser">
        <section class="list">
          <p class="faint">
            {counts === undefined
              ? 'reading …'
              : `${grouped(counts.matchingGroups)} of ${grouped(counts.groups)} groups, ${grouped(counts.matchingEpisodes)} of ${grouped(counts.episodes)} episodes`}
          </p>
          <VirtualList
            count={counts?.matchingGroups ?? 0}
            rowHeight={ROW_HEIGHT}
            chosen={chosen}
            label="groups"
            onRange={onRange}
            onChoose={setPicked}
          >
            {(index) => <GroupLine row={rows.get(index)} />}
          </VirtualList>
        </section>
        <section class="group">
          {(wanted ?? task) ? (
            <GroupView run={run} file={file.name} task={wanted ?? task ?? ''} agent={agent} />
          ) : (
            counts !== undefined && <p class="empty">No group here is like that.</p>
          )}
        </section>
      </div>
    </div>
  );
}

/** The step of a file; evaluations outside of the run's course come last. */
function stepOf(name: string): number {
  const digits = /^(?:step|evaluation)-(\d+)$/.exec(name)?.[1];
  return digits === undefined ? Number.MAX_SAFE_INTEGER : Number(digits);
}

const fileTitle = (name: string) => name.replace(/^(step|evaluation)-0*(\d+)$/, '$1 $2');

/** In the order of the run: the evaluation after a step follows it. */
function orderedFiles(files: readonly EpisodeFile[]): EpisodeFile[] {
  return files.toSorted((a, b) => stepOf(a.name) - stepOf(b.name) || (a.name < b.name ? 1 : -1));
}

/**
 * The file that the address names, or the first at or after a step; else the file of the last step with a group whose
 * episodes differ, or of the last step.
 */
function chosenFile(
  files: readonly EpisodeFile[],
  { file, step }: EpisodesTabProps['query'],
  log: HeardRun['log']['steps'],
): EpisodeFile | undefined {
  const named = files.find(({ name }) => name === file);
  if (named !== undefined) return named;
  const steps = files.filter(({ name }) => name.startsWith('step-'));
  const after = step === undefined ? undefined : steps.find(({ name }) => stepOf(name) >= Number(step));
  const telling = new Set(log.flatMap(({ step, groups }) => (groups?.mixed > 0 ? [step] : [])));
  return after ?? steps.findLast(({ name }) => telling.has(stepOf(name))) ?? steps.at(-1) ?? files.at(-1);
}

/** The first row whose episodes differ in reward: equal ones have no advantage to look at. */
function tellingRow(rows: ReadonlyMap<number, GroupRow>): number {
  for (const [index, { episodes }] of rows) if (new Set(episodes.map(({ reward }) => reward)).size > 1) return index;
  return 0;
}

const MOST_DOTS = 32;

/** A group in the list: its task, its mean reward, and a dot an episode. */
function GroupLine({ row }: { readonly row: GroupRow | undefined }) {
  if (row === undefined) return <span class="faint">…</span>;
  const rewards = row.episodes.map(({ reward }) => reward);
  const [low, high] = [Math.min(...rewards, 0), Math.max(...rewards, 1)];
  return (
    <>
      <span class="task" title={clean(row.task)}>
        {clean(row.title)}
      </span>
      <span class="dots">
        {row.episodes.slice(0, MOST_DOTS).map((episode) => (
          <Dot key={episode.sample} episode={episode} height={(episode.reward - low) / (high - low || 1)} />
        ))}
        <b>{significant(mean(rewards))}</b>
      </span>
    </>
  );
}

/** A bar as high as the reward; crossed if the episode failed, with a notch if an output was invalid. */
function Dot({ episode, height }: { readonly episode: EpisodeDot; readonly height: number }) {
  const { failed, invalid, matches, sample, reward } = episode;
  const kind = failed ? 'failed' : invalid ? 'invalid' : 'plain';
  const title = `sample ${sample}: reward ${significant(reward)}${failed ? ', failed' : ''}${invalid ? ', invalid output' : ''}`;
  return (
    <i class={`dot ${kind}${matches ? '' : ' other'}`} title={title}>
      <i style={{ height: `${Math.round(2 + 12 * height)}px` }} />
    </i>
  );
}

/** Rows of one request; the server's maximum. */
const PAGE = 200;
/** Typing within this time is one question. */
const PATIENCE_MS = 200;

/** The groups that match, as far as they were looked at. */
interface Groups {
  /** The counts of the first reply; undefined before it. */
  readonly counts: Omit<GroupPage, 'offset' | 'rows'> | undefined;
  readonly rows: ReadonlyMap<number, GroupRow>;
  readonly problem: string | undefined;
  readonly onRange: (first: number, last: number) => void;
}

/** Loads groups page by page while the user scrolls. */
function useGroups(run: string, query: GroupQuery | undefined): Groups {
  const source = useSource();
  const [state, setState] = useState<Omit<Groups, 'onRange'>>({
    counts: undefined,
    rows: new Map(),
    problem: undefined,
  });
  const asked = useRef(new Set<number>());
  const current = useRef('');
  const key = JSON.stringify([run, query]);

  const fetchPage = useCallback(
    (page: number) => {
      if (query === undefined || asked.current.has(page)) return;
      asked.current.add(page);
      source.groups(run, query, page * PAGE).then(
        ({ rows, offset, ...counts }) => {
          if (current.current !== key) return; // a newer request has replaced this one
          setState((before) => {
            const all = new Map(before.rows);
            for (const [i, row] of rows.entries()) all.set(offset + i, row);
            return { counts, rows: all, problem: undefined };
          });
        },
        (error: Error) => {
          if (current.current === key) setState((before) => ({ ...before, problem: error.message }));
        },
      );
    },
    [source, key],
  );

  useEffect(() => {
    current.current = key;
    asked.current = new Set();
    const timer = setTimeout(() => {
      setState({ counts: undefined, rows: new Map(), problem: undefined });
      fetchPage(0);
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [key, fetchPage]);

  const onRange = useCallback(
    (first: number, last: number) => {
      if (last < first || current.current !== key) return;
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) fetchPage(page);
    },
    [key, fetchPage],
  );
  return { ...state, onRange };
}
