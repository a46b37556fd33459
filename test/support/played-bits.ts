import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventBody } from '../../src/base/core/events.js';
import { nodeFiles } from '../../src/base/platform/node-files.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { eventsOf } from './tiny-run.js';

/** The results of a run, without times and without entropies, which only some backends know. */
export async function playedBits(run: RunDirectory) {
  const events = (await eventsOf(run)).filter(({ type }) => type === 'step' || type === 'evaluation');
  const plain = JSON.stringify(events, (key, value) =>
    /^(seconds|phaseSeconds|entropy)$/.test(key) ? undefined : value,
  );
  const folder = join(run.path, 'episodes');
  const files = (await readdir(folder)).sort();
  const episodes = await Promise.all(files.map((file) => readEpisodes(nodeFiles, join(folder, file))));
  const played = episodes
    .flat()
    .map(({ turns }) => turns.map(({ prompt, response, logprobs }) => ({ prompt, response, logprobs })));
  const failures = episodes.flat().flatMap(({ failure }) => (failure === undefined ? [] : [failure]));
  return { events: JSON.parse(plain) as EventBody[], files, played, failures };
}
