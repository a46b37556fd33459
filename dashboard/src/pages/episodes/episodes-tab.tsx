import { useEffect, useMemo, useState } from 'preact/hooks';
import { grouped } from '../../../../src/base/host.js';
import type { EpisodeFile } from '../../../../src/runs/analysis.js';
import { type GroupQuery, groupKinds, type ShownGroupKind } from '../../../../src/runs/analysis.js';
import { Choice } from '../../parts/choice.js';
import { NumberField, numberOr } from '../../parts/number-field.js';
import { clean } from '../../parts/texts.js';
import { VirtualList } from '../../parts/virtual-list.js';
import { go, type Route } from '../../routes.js';
import { type HeardRun, useSource } from '../../run-store.js';
import { GroupLine } from './group-line.js';
import { GroupView } from './group-view.js';
import { useGroups } from './use-groups.js';

const ROW_HEIGHT = 44;

interface EpisodesTabProps {
  readonly run: HeardRun;
  readonly query: Extract<Route, { page: 'run' }>['query'];
}

/** The episodes of a run: a file's groups in a list, the chosen one's episodes side by side. */
export function EpisodesTab({ run, query }: EpisodesTabProps) {
  const source = useSource();
  const files = useMemo(() => orderedFiles(run.files), [run.files]);
  const file = chosenFile(files, query);
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
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(0), [asked]);
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
  const wanted = query.task !== undefined && chosen === 0 ? query.task : undefined;
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
            onChoose={setChosen}
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

/** The file that the address names, or the first at or after a step; else the last step's. */
function chosenFile(files: readonly EpisodeFile[], { file, step }: EpisodesTabProps['query']): EpisodeFile | undefined {
  const named = files.find(({ name }) => name === file);
  if (named !== undefined) return named;
  const steps = files.filter(({ name }) => name.startsWith('step-'));
  const after = step === undefined ? undefined : steps.find(({ name }) => stepOf(name) >= Number(step));
  return after ?? steps.at(-1) ?? files.at(-1);
}
