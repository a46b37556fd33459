/** The entry of a Web Worker that trains one run of the page. */

import { messageOf } from '../../../src/base/errors.js';
import { EmbeddedBackend } from '../../../src/engine/backends.js';
import { engineHere, Gate } from './engine-here.js';
import { noFiles } from './no-files.js';
import type { FromTab, ToTab } from './protocol.js';
import { type RunSettings, repairRecipe } from './repair-recipe.js';
import { tabKernels } from './tab-kernels.js';
import { trainInTab } from './tab-run.js';

interface Scope {
  onmessage: (event: { readonly data: ToTab }) => void;
  postMessage(message: FromTab): void;
}
const scope = globalThis as unknown as Scope;
/** The most times that the page hears of the progress of a step. */
const DRAWINGS = 8;

const gate = new Gate();

async function start(settings: RunSettings): Promise<void> {
  const recipe = repairRecipe(settings);
  const backend = new EmbeddedBackend(engineHere(await tabKernels(recipe), gate), noFiles);
  await trainInTab(
    recipe,
    backend,
    {
      onEvent: (event) => scope.postMessage({ type: 'event', event }),
      onEpisode: (step, episode) => scope.postMessage({ type: 'episode', step, episode }),
      onProgress: (progress) => {
        // Each message is a drawing of the page, and hundreds of episodes end in a second.
        const share = Math.ceil(progress.episodes / DRAWINGS);
        if (progress.done % share === 0) scope.postMessage({ type: 'progress', progress });
      },
    },
    new AbortController().signal, // the page terminates the worker instead
  );
}

scope.onmessage = ({ data }) => {
  if (data.type === 'pause') gate.close();
  else if (data.type === 'continue') gate.open();
  else
    start(data.settings).then(
      () => scope.postMessage({ type: 'done' }),
      (error: unknown) => scope.postMessage({ type: 'failed', message: messageOf(error) }),
    );
};
