import { grouped } from '@drmas/engine/host';
import type { EmbeddedReport, EmbeddedRun, GroupQuery, ShownGroup } from '../../../../src/runs/analysis.js';
import {
  candidatesOf,
  type FactsGroup,
  groupPage,
  hasText,
  type MatchingGroup,
  unpack,
} from '../../../../src/runs/analysis.js';
import type { Source } from './source.js';

const PAGE = 200;

/** The report that the page was written into. Its data are complete. */
export function embeddedSource({ folder, ablations, runs, texts }: EmbeddedReport): Source {
  const named = new Map(runs.map((run) => [run.listed.name, run]));
  const groupsOf = (run: string, file: string): ShownGroup[] =>
    (named.get(run)?.files.find(({ name }) => name === file)?.groups ?? []).map(
      (packed) => unpack(packed, texts) as ShownGroup,
    );
  return {
    live: false,
    follow(names, onMessage) {
      if (names.length === 0)
        onMessage({ type: 'list', data: { folder, ablations, runs: runs.map(({ listed }) => listed) } });
      for (const name of names) tell(name, named.get(name), onMessage);
      return () => {};
    },
    lacks(name) {
      const { shown = 0, kept = 0 } = named.get(name) ?? {};
      return shown === kept
        ? ''
        : `This report holds ${grouped(shown)} of ${grouped(kept)} episodes: whole groups, spread evenly over every file, those behind a spike first. drmas watch shows all.`;
    },
    async groups(run, query, offset) {
      const groups = groupsOf(run, query.file);
      const facts = groups.map(factsOf);
      const matching = groups.flatMap((group, i) => matchingOf(group, facts[i], query));
      const file = {
        groups: groups.length,
        episodes: facts.reduce((sum, { episodes }) => sum + episodes.length, 0),
        agents: [...new Set(facts.flatMap(({ episodes }) => episodes.flatMap(({ agents }) => agents)))].sort(),
      };
      return groupPage(file, matching, { offset, limit: PAGE });
    },
    async group(run, file, task) {
      const group = groupsOf(run, file).find((one) => one.task === task);
      if (group === undefined) throw new Error('this report holds no episode of that task; drmas watch shows all');
      return group;
    },
  };
}

function tell(name: string, run: EmbeddedRun | undefined, onMessage: Parameters<Source['follow']>[1]): void {
  if (run === undefined) return;
  const { listed, record, events, files } = run;
  onMessage({ type: 'run', data: { name, listed, record } });
  onMessage({ type: 'events', data: { name, reset: true, more: false, events } });
  onMessage({ type: 'files', data: { name, files } });
}

function factsOf({ task, title, episodes }: ShownGroup): FactsGroup {
  return {
    task,
    title,
    episodes: episodes.map(({ sample, reward, failure, turns }) => ({
      sample,
      reward,
      failed: failure !== null,
      agents: [...new Set(turns.map(({ agent }) => agent))],
      invalid: [...new Set(turns.filter(({ valid }) => !valid).map(({ agent }) => agent))],
    })),
  };
}

function matchingOf(shown: ShownGroup, group: FactsGroup | undefined, query: GroupQuery): MatchingGroup[] {
  if (group === undefined) return [];
  const candidates = candidatesOf(group, query).filter((candidate) => {
    const episode = shown.episodes[group.episodes.indexOf(candidate)];
    return query.text === '' || (episode !== undefined && hasText(shown, episode, query));
  });
  return candidates.length === 0 ? [] : [{ group, matches: new Set(candidates) }];
}
