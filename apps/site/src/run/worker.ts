/** The entry of a Web Worker that trains one run of the page. */

import kernelsAddress from '@drmas/engine/drmas.wasm?url';
import { EmbeddedBackend } from '@drmas/engine/embedded';
import { DeviceError, messageOf } from '@drmas/engine/errors';
import { createWasmKernels, type Kernels } from '@drmas/engine/kernels';
import type { Gpu } from '@drmas/webgpu';
import type { Recipe } from '../../../../src/method/recipe.js';
import { engineHere, Gate, tabFiles } from './engine-here.js';
import type { FromTab, ToTab } from './protocol.js';
import { isUsualWarmStart, type RunSettings, repairRecipe } from './repair-recipe.js';
import { trainInTab } from './tab-run.js';

/**
 * The kernels for a run of the page: WebAssembly, or the browser's GPU if the recipe requests it.
 * @throws DeviceError if a GPU is requested and the browser has none, or has one that computes wrong results
 */
async function tabKernels({ backend }: Pick<Recipe, 'backend'>): Promise<Kernels> {
  if (backend.type === 'embedded' && backend.device === 'gpu') return gpuKernels();
  const response = await fetch(kernelsAddress);
  if (!response.ok) throw new Error(`the kernels could not be loaded: ${response.status} at ${kernelsAddress}`);
  return createWasmKernels(new Uint8Array(await response.arrayBuffer()));
}

async function gpuKernels(): Promise<Kernels> {
  const { gpu } = navigator as { readonly gpu?: Gpu };
  if (gpu === undefined) throw new DeviceError('absent', 'this browser has no WebGPU, or not for this page');
  const { adapterOf, openDeviceKernels } = await import('@drmas/webgpu');
  return openDeviceKernels(() => adapterOf(gpu));
}

interface Scope {
  onmessage: (event: { readonly data: ToTab }) => void;
  postMessage(message: FromTab): void;
}
const scope = globalThis as unknown as Scope;
/** The most times that the page hears of the progress of a step. */
const DRAWINGS = 8;

const gate = new Gate();

const WARM = 'warm-start';
const WARM_FILES = ['config.json', 'drmas_tokenizer.json', 'model.safetensors'];

/**
 * The model after the warm start, file by file, if the host of the page has it; the script that builds the site makes
 * it. A host may answer with a page of HTML for a file that it does not have.
 */
async function fetchedWarmStart(address: string, settings: RunSettings): Promise<Map<string, Uint8Array> | undefined> {
  if (!isUsualWarmStart(settings)) return undefined;
  const fetched = await Promise.all(
    WARM_FILES.map(async (name): Promise<[string, Uint8Array] | undefined> => {
      const response = await fetch(`${address}/${name}`).catch(() => undefined);
      const isFile = response?.ok === true && !response.headers.get('content-type')?.startsWith('text/html');
      return isFile ? [`${WARM}/${name}`, new Uint8Array(await response.arrayBuffer())] : undefined;
    }),
  );
  return fetched.includes(undefined) ? undefined : new Map(fetched as [string, Uint8Array][]);
}

async function start(settings: RunSettings, warmStart: string): Promise<void> {
  const recipe = repairRecipe(settings);
  const warm = await fetchedWarmStart(warmStart, settings);
  const files = tabFiles(warm ?? new Map());
  const backend = new EmbeddedBackend(engineHere(await tabKernels(recipe), gate), files);
  await trainInTab(
    recipe,
    backend,
    {
      onEvent: (event) => scope.postMessage({ type: 'event', event }),
      onTries: (tries) => scope.postMessage({ type: 'tries', tries }),
      onEpisode: (step, episode) => scope.postMessage({ type: 'episode', step, episode }),
      onProgress: (progress) => {
        // Each message is a drawing of the page, and hundreds of episodes end in a second.
        const share = Math.ceil(progress.episodes / DRAWINGS);
        if (progress.done % share === 0) scope.postMessage({ type: 'progress', progress });
      },
    },
    new AbortController().signal, // the page terminates the worker instead
    warm && WARM,
  );
}

scope.onmessage = ({ data }) => {
  if (data.type === 'pause') gate.close();
  else if (data.type === 'continue') gate.open();
  else
    start(data.settings, data.warmStart).then(
      () => scope.postMessage({ type: 'done' }),
      (error: unknown) => scope.postMessage({ type: 'failed', message: messageOf(error) }),
    );
};
